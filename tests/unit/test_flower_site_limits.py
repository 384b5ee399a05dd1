"""A site's own limits bite: in its agreement, and over a whole run."""

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from examples.four_hospitals.hospitals import Hospital, open_hospital

from fedassay import Examples, Grid, Hierarchy, Polya, Survey
from fedassay.engines.flower import conversation
from fedassay.engines.flower.agreement import Agreement
from fedassay.engines.flower.participant import Participant
from fedassay.engines.flower.records import Question
from fedassay.engines.flower.run import federate
from fedassay.engines.flower.settings import RunSettings
from fedassay.engines.flower.site import Site
from fedassay.errors import (
    FileInvalid,
    MessageMalformed,
    RoundAborted,
    SettingInvalid,
    SurveyRefused,
    TooFewReports,
)
from fedassay.examples import IntArray
from fedassay.files import canonical
from fedassay.ledger import Charge, Ledger
from fedassay.mechanisms import Privacy
from fedassay.secagg import Identity
from fedassay.tables.reading import Columns
from tests.clock import Clock
from tests.flowergrid import CONFIG, InProcessGrid
from tests.surveys import local_survey, small_survey

EXACT = small_survey(minimum_reports=4)
LOCAL = local_survey(Fraction(2))
NOISY = Survey(
    privacy=Privacy.DISTRIBUTED,
    grid=Grid.uniform(4),
    hierarchy=Hierarchy.flat(4),
    mechanisms=(Polya(Fraction(2), 1, 4),),
    minimum_reports=4,
)


def site(folder: Path, **changes: str) -> Site:
    lines = {
        "format": '"fedassay.site/1"',
        "data-folder": '"."',
        "data-id": '"ward"',
        "smallest-cohort": "4",
        "largest-epsilon": '"2"',
        "budget": '"5"',
        "reason": '"made-up rows"',
        "colluders": "0",
        "exact-sums": "true",
        "smallest-cell": "0",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    path = folder / "site.toml"
    path.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    return Site(Path("scores.csv"), Columns(), folder, Agreement.load(path))


def answers(asked: Site, survey: Survey) -> bool:
    try:
        asked.policy(survey).check(survey)
    except SurveyRefused:
        return False
    return True


@pytest.mark.parametrize(
    ("survey", "changes", "is_answered"),
    [
        (EXACT, {}, True),
        (EXACT, {"smallest_cohort": "5"}, False),
        (EXACT, {"colluders": "1"}, False),
        (EXACT, {"exact_sums": "false"}, False),
        (NOISY, {}, True),
        (NOISY, {"smallest_cohort": "5"}, False),
        (NOISY, {"colluders": "1"}, False),
        (NOISY, {"largest_epsilon": '"1999/1000"'}, False),
        (LOCAL, {}, True),
        # A report that protects itself needs no crowd, and no more epsilon than any other.
        (LOCAL, {"smallest_cohort": "5", "colluders": "1"}, True),
        (LOCAL, {"largest_epsilon": '"1999/1000"'}, False),
        *[
            (survey, {"model_digests": f'["{"ab" * 32}"]'}, False)
            for survey in (EXACT, NOISY, LOCAL)
        ],
    ],
)
def test_each_limit_of_a_site_holds_for_each_privacy_model(
    tmp_path: Path, survey: Survey, changes: dict[str, str], is_answered: bool
) -> None:
    assert answers(site(tmp_path, **changes), survey) is is_answered


def test_a_setting_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileInvalid, match="unknown setting 'largest-epsilom'"):
        site(tmp_path, largest_epsilom='"1"')


def hospitals(folder: Path, *, smallest_cohort: int = 3) -> list[Hospital]:
    rng = np.random.default_rng(5)
    opened = []
    for number in range(5):
        scores = rng.random(40)
        rows = Examples((rng.random(40) < scores).astype(int), scores)
        opened.append(
            open_hospital(
                folder / f"h{number}", rows, pinned=False, smallest_cohort=smallest_cohort
            )
        )
    return opened


def run_over(sites: list[Hospital], **changes: str | int) -> object:
    config = {**CONFIG, "sites": 5, "height": 4, "fanout": 2, **changes}
    grid = InProcessGrid({number: one.config for number, one in enumerate(sites, 1)})
    return federate(grid, RunSettings.from_config(config))


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "time", Clock())


def charges(hospital: Hospital) -> int:
    entries = Ledger(hospital.folder / "site" / "ledger.db").entries()
    return sum(isinstance(entry.content, Charge) for entry in entries)


def test_exact_sums_of_a_smaller_crowd_than_a_site_allows_are_declined(tmp_path: Path) -> None:
    # Of five sites one may collude: four reports leave three honest ones, five leave four.
    sites = hospitals(tmp_path, smallest_cohort=4)
    with pytest.raises(RoundAborted, match="5 declined stage keys, SiteDeclined"):
        run_over(sites)
    assert [charges(one) for one in sites] == [0] * 5
    run_over(sites, **{"minimum-reports": 5})
    assert [charges(one) for one in sites] == [1] * 5


@pytest.mark.parametrize("privacy", ["distributed", "local"])
def test_more_epsilon_than_a_site_allows_is_declined(tmp_path: Path, privacy: str) -> None:
    sites = hospitals(tmp_path)
    for one in sites:
        path = one.folder / "site" / "site.toml"
        text, times = re.subn('largest-epsilon = "5"', 'largest-epsilon = "1"', path.read_text())
        assert times == 1
        path.write_text(text)
    with pytest.raises((RoundAborted, TooFewReports), match=r"5 declined stage .*, SiteDeclined"):
        run_over(sites, privacy=privacy, epsilon="2")
    assert [charges(one) for one in sites] == [0] * 5
    run_over(sites, privacy=privacy, epsilon="1")
    assert [charges(one) for one in sites] == [1] * 5


@pytest.mark.parametrize(
    ("settings", "noise"), [({}, 0), ({"privacy": "distributed", "epsilon": "1"}, 500)]
)
def test_counters_that_a_sum_might_not_carry_are_declined_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], noise: int
) -> None:
    """Of 2^31 each of five sites has a fifth; noise of epsilon 1 on 60 counters needs some 32."""

    def counts(given: int) -> Callable[[Site, Survey], tuple[IntArray, None]]:
        def counted(_: Site, survey: Survey) -> tuple[IntArray, None]:
            made = np.zeros((2, survey.grid.cells), dtype=np.int64)
            made[1, 2] = given
            return made, None

        return counted

    sites = hospitals(tmp_path)
    most = (2**31 - 1) // 5
    monkeypatch.setattr(Site, "rows", counts(most + 1 if noise == 0 else most - 10))
    with pytest.raises(RoundAborted):
        run_over(sites, **settings)
    assert [charges(one) for one in sites] == [0] * 5
    monkeypatch.setattr(Site, "rows", counts(most - noise))
    run_over(sites, **settings)
    assert [charges(one) for one in sites] == [1] * 5


def test_an_identity_without_a_roster_takes_part_in_nothing(tmp_path: Path) -> None:
    whole = Site.from_config(hospitals(tmp_path)[0].config)
    half = replace(whole, agreement=replace(whole.agreement, identity=tmp_path / "identity.pem"))
    Identity.generate().save(tmp_path / "identity.pem")
    with pytest.raises(SettingInvalid, match=r"two settings of site\.toml together"):
        _ = Participant(half, "1", "run")._member


@pytest.mark.parametrize("stage", ["shares", "masked", "confirm", "unmask"])
def test_a_round_id_of_another_length_names_no_file(tmp_path: Path, stage: str) -> None:
    participant = Participant(Site.from_config(hospitals(tmp_path)[0].config), "1", "run")
    answer: Callable[[Question], bytes] = getattr(participant, stage)
    for round_id in (b"", b"../../etc/passwd!", bytes(15), bytes(17)):
        with pytest.raises(MessageMalformed, match="a round id has 16 bytes"):
            answer(Question(canonical(EXACT.to_json()), round_id, b""))


@pytest.mark.parametrize("place", ["../elsewhere.csv", "/etc/hostname", "link.csv"])
def test_a_table_outside_the_sites_folder_is_not_read(tmp_path: Path, place: str) -> None:
    hospital = hospitals(tmp_path)[0]
    (hospital.folder / "elsewhere.csv").write_text("risk,outcome\n0.5,1\n")
    (hospital.folder / "scores" / "link.csv").symlink_to(hospital.folder / "elsewhere.csv")
    asked = replace(Site.from_config(hospital.config), data=Path(place))
    with pytest.raises(FileInvalid, match="inside"):
        asked.table()
