"""The JavaScript client as a package: what an app calls, what it keeps, what npm packs."""

import json
import re
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import Thread
from typing import Any

import pytest

from fedassay import Grid, Survey, Tally
from fedassay.errors import ReportDuplicate
from fedassay.files import canonical
from fedassay.group_names import GroupNames
from fedassay.survey_json import survey_from_bytes
from fedassay.wire import messages
from tests.browser import start_browser
from tests.node import CLIENT, SCRIPTS, run_node
from tests.vectors.surveys import LOCAL, local

GRR = LOCAL["grr, one level"]


def text_of(survey: Survey) -> str:
    return canonical(survey.to_json()).decode()


def package(what: str, **given: object) -> Any:
    """What the package does in node."""
    done = run_node(SCRIPTS / "devices.mjs", given=json.dumps({"what": what, **given}))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- one answer, kept before it is sent -----------------------------------------------------


@pytest.fixture(scope="module")
def retried() -> Any:
    return package("retries", survey=text_of(GRR))


def test_a_retry_of_any_kind_sends_the_same_bytes(retried: Any) -> None:
    """Three at once, later after a restart, with other rows; and a new answer is another."""
    assert len(set(retried["together"])) == 1
    assert len(set(retried["later"])) == 1
    assert retried["written"] == 1
    assert len({*retried["together"], *retried["later"], retried["anew"]}) == 3


def test_a_tally_counts_a_report_that_was_sent_twice_once(retried: Any) -> None:
    first, again = (bytes.fromhex(each) for each in retried["later"])
    assert len(first) == 68
    tally = Tally.of(GRR, messages(BytesIO(first + bytes.fromhex(retried["anew"])), GRR))
    assert sum(tally.reports) == 2
    with pytest.raises(ReportDuplicate):
        Tally.of(GRR, messages(BytesIO(first + again), GRR))


def test_an_answer_that_was_kept_is_neither_checked_against_new_rows_nor_made_anew(
    retried: Any,
) -> None:
    assert retried["refused"] == "accepted"
    assert "damaged" in retried["damaged"]


# --- what a device has spent ----------------------------------------------------------------


def test_an_account_adds_up_and_refuses_what_passes_it() -> None:
    """1/3 and 1 and 1; another 1/3 would pass 5/2, and a refusal charges nothing."""
    other = LOCAL["oue, one level"]
    texts = [text_of(each) for each in (GRR, other, other, GRR, GRR)]
    found = package("account", surveys=texts, most="5/2")
    assert [each == "accepted" for each in found["said"]] == [True, True, True, False, False]
    assert "account" in found["said"][3]
    assert found["spent"] == found["again"] == "7/3"
    assert found["written"] == 3


def test_two_surveys_of_which_each_row_answers_one_cost_their_epsilon_once() -> None:
    both = [LOCAL["first of two, by hash"], LOCAL["second of two, cells for each label"]]
    found = package("account", surveys=[text_of(each) for each in both], most="5")
    assert (found["said"], found["spent"]) == (["accepted"] * 2, "5/1")
    again = package("account", surveys=[text_of(both[1])] * 2, most="5")
    assert again["said"][1] != "accepted"


# --- groups and pairs -----------------------------------------------------------------------


def test_node_counts_a_row_in_the_group_that_python_does() -> None:
    groups = GroupNames("sex", ("F", "M", "2", "a b", 'say "x"', "Zoë", "true"))
    values = [*groups.names, " F ", "F\u00a0", "\u2003M\u3000", "X", "  ", "zoë", "F" * 300, True]
    values += ["é" * 199, "x" + " " * 300, 2, 2.5, None, "\ufeffF", "\x85M", "\x1cM"]
    assert (
        package("groups", groups=groups.to_json(), values=values) == groups.codes(values).tolist()
    )


def test_node_puts_rows_into_the_cells_of_their_group() -> None:
    content = local("grr", Fraction(5), Grid.uniform(12)).to_json()
    content["grid"]["cells"] = 3
    content["groups"] = {"column": "ward", "names": ["north", "south"]}
    survey = survey_from_bytes(canonical(content))
    rows = [("south", 1, 0.5), ("north", 0, 0.9), (None, 1, 0.1), ("east", 0, 1.0)]
    listed = [{"group": group, "label": label, "score": score} for group, label, score in rows]
    found = package("values", survey=text_of(survey), rows=listed)
    assert found == [12 + 3 + 1, 2, 12 + 6, 9 + 2]


def test_node_puts_a_row_with_two_scores_into_their_joint_cell() -> None:
    content = local("grr", Fraction(5), Grid.uniform(6)).to_json()
    content["grid"] = {
        "kind": "pair",
        "names": ["old", "new"],
        "first": Grid.uniform(2).to_json(),
        "second": Grid.explicit([0, 0.1, 0.5, 1]).to_json(),
    }
    survey = survey_from_bytes(canonical(content))
    rows = [
        {"label": 1, "score": 0.5, "second": 0.2},
        {"label": 0, "score": 0.6, "second": 1.0},
        {"label": 0, "score": 0.6},
        {"label": 0, "score": 0.6, "second": "0.7312345"},
    ]
    found = package("values", survey=text_of(survey), rows=rows)
    assert found[:2] == [6 + 1, 5]
    assert all("second scores" in rule and "7312345" not in rule for rule in found[2:])


def test_node_declines_more_cells_and_more_epsilon_than_any_device_answers() -> None:
    row = [{"label": 1, "score": 0.5}]
    large = local("grr", Fraction(5), Grid.uniform(8193))
    weak = local("grr", Fraction(11), Grid.uniform(4))
    assert "at most 8192 cells" in package("values", survey=text_of(large), rows=row)[0]
    assert "at most epsilon 10" in package("values", survey=text_of(weak), rows=row)[0]


# --- the package ----------------------------------------------------------------------------


def test_npm_packs_what_the_package_needs_and_nothing_else() -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not on this machine. Install it (Debian: apt install npm).")
    done = subprocess.run(
        [npm, "pack", "--dry-run", "--json", "--offline"],
        cwd=CLIENT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    packed = {each["path"] for each in json.loads(done.stdout)[0]["files"]}
    needed, new = set(), {"client.js"}
    while new:
        needed |= new
        texts = [(CLIENT / name).read_text() for name in new]
        imported = {name for text in texts for name in re.findall(r'from "\./(.+?)"', text)}
        new = imported - needed
    assert packed == needed | {"package.json", "README.md", "client.d.ts"}


def test_the_package_is_imported_by_its_name_and_has_the_types_that_it_declares() -> None:
    script = 'import("fedassay-client").then((m) => console.log(JSON.stringify(Object.keys(m))))'
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on this machine. Install it (Debian: apt install nodejs).")
    done = subprocess.run(
        [node, "-e", script], cwd=CLIENT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    declared = set(
        re.findall(r"^export (?:function|class) (\w+)", (CLIENT / "client.d.ts").read_text(), re.M)
    )
    # What only the vectors call is not for apps.
    assert set(json.loads(done.stdout)) - {"hashedLevel", "hitOf", "levelOfWord"} == declared


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@contextmanager
def served() -> Iterator[str]:
    """The client's files, as a web server has them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(CLIENT)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


PAGE = """(async () => {
  const { answerOnce, fraction, readSurvey, textStore } = await import("/client.js");
  const survey = await readSurvey(new TextEncoder().encode(SURVEY));
  const limits = { largestEpsilon: fraction("5", "largest epsilon") };
  const store = textStore(localStorage);
  const ask = () => answerOnce(store, survey, [{ label: 1, score: 0.73 }], limits);
  const reports = await Promise.all([ask(), ask()]);
  return reports.map((bytes) => btoa(String.fromCharCode(...bytes)));
})()"""


def test_a_browser_answers_once_and_python_tallies_it() -> None:
    with served() as address, start_browser() as browser:
        browser.ask("Page.navigate", url=f"{address}/client.js")
        script = PAGE.replace("SURVEY", json.dumps(text_of(GRR)))
        reports = [b64decode(each) for _ in range(2) for each in browser.run(script)]
    assert len(set(reports)) == 1
    tally = Tally.of(GRR, messages(BytesIO(reports[0]), GRR))
    assert sum(tally.reports) == 1
