"""What a server learns from refusals: nothing but that it was refused, and not often."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Thread

import pytest
from examples.four_hospitals.hospitals import Hospital, open_hospital
from flwr.app import Message
from typer.testing import CliRunner

from fedassay import Examples, Polya, Survey, SystemRandomness
from fedassay.cli.app import app as cli
from fedassay.engines import departure
from fedassay.engines.flower import questions
from fedassay.engines.flower.client_app import app
from fedassay.engines.flower.questions import Questions
from fedassay.engines.flower.records import (
    Answered,
    Declined,
    Question,
    Reply,
    question_content,
    read_reply,
)
from fedassay.engines.flower.site import Site
from fedassay.errors import FileInvalid, SurveyRefused
from fedassay.files import canonical
from fedassay.ledger import Ledger, Part
from fedassay.secagg import Terms
from tests.clock import Clock
from tests.flowergrid import InProcessGrid, context_of
from tests.unit.test_flower_site_limits import NOISY


def hospital(folder: Path) -> Hospital:
    rows = Examples([0, 1, 1, 0], [0.1, 0.9, 0.6, 0.4])
    return open_hospital(folder / "h", rows, pinned=False, smallest_cohort=2)


def with_epsilon(epsilon: Fraction) -> Survey:
    return replace(NOISY, mechanisms=(Polya(epsilon, 1, 3),), colluders=1)


def keys(site: Hospital, survey: Survey) -> Reply:
    """Ask the first stage of a fresh round, as a server would that never goes on."""
    InProcessGrid({})  # sets what Flower wants to know of the task
    terms = Terms.of(survey, randomness=SystemRandomness())
    content = question_content(
        Question(canonical(survey.to_json()), terms.round_id, terms.to_bytes())
    )
    message = Message(content, dst_node_id=1, message_type="query.keys")
    message.metadata.__dict__["_message_id"] = "1"
    return read_reply(app(message, context_of(1, site.config)))


def spend(site: Hospital, survey: Survey) -> None:
    data_id = Site.from_config(site.config).agreement.data_id
    Ledger(site.folder / "site" / "ledger.db").charge(survey, Part(data_id))


def test_the_rest_of_a_budget_cannot_be_searched_for(tmp_path: Path) -> None:
    """Halving an interval gives 2^-20 of it in twenty questions, and then no more, ever."""
    site = hospital(tmp_path)
    low, high, told = Fraction(0), Fraction(5), 0
    for _ in range(40):
        middle = (low + high) / 2
        if middle.denominator > 10**9:
            middle = middle.limit_denominator(10**9)
        if isinstance(keys(site, with_epsilon(middle)), Answered):
            low, told = middle, told + 1
        else:
            high = middle
    assert told <= 20
    assert isinstance(keys(site, with_epsilon(Fraction(1))), Declined)
    assert Questions(site.folder / "site" / "questions.json").uncharged == 20


def test_refusals_are_alike_whatever_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = hospital(tmp_path)
    folder = site.folder / "site"
    clock = Clock()
    monkeypatch.setattr(departure, "time", clock)

    def asked(survey: Survey) -> tuple[Reply, float]:
        before = clock.now
        return keys(site, survey), clock.now - before

    survey = with_epsilon(Fraction(1))
    policy = asked(with_epsilon(Fraction(6)))
    text = (folder / "site.toml").read_text()
    (folder / "site.toml").write_text(text.replace("again = true", "again = false"))
    spend(site, survey)
    repeat = asked(survey)
    for number in range(3):
        spend(site, with_epsilon(5 - Fraction(number, 1000)))
    # Of 20 some 4.003 are left.
    budget = asked(with_epsilon(Fraction(9, 2)))
    (site.folder / "scores" / "scores.parquet").unlink()
    table = asked(with_epsilon(Fraction(1, 1000)))
    said = Declined("SiteDeclined", "the site's log says what to do")
    assert [reply for reply, _ in (policy, repeat, budget, table)] == [said] * 4
    # Each at the end of its survey's slot, whatever was looked at before.
    assert [seconds for _, seconds in (policy, repeat, budget)] == pytest.approx(
        [0.25 + 5e-5 * (d + 8 * d**0.5) for d in (16 / 3 / 6, 16 / 3 / 1, 16 / 3 / 4.5)], abs=1e-9
    )


def test_what_is_charged_does_not_count_and_the_operator_may_begin_anew(tmp_path: Path) -> None:
    site = hospital(tmp_path)
    folder = site.folder / "site"
    questions = Questions(folder / "questions.json")
    for _ in range(19):
        questions.ask()
    for _ in range(5):
        questions.ask()
        questions.charged()
    assert questions.uncharged == 19
    questions.ask()
    with pytest.raises(SurveyRefused, match="questions FOLDER --reset"):
        questions.ask()
    assert "20 of 20" in CliRunner().invoke(cli, ["federation", "questions", str(folder)]).output
    done = CliRunner().invoke(cli, ["federation", "questions", str(folder), "--reset"])
    assert "counting from zero" in done.output
    assert questions.uncharged == 0
    questions.charged()
    assert questions.uncharged == 0


def test_a_count_that_was_spoiled_is_refused(tmp_path: Path) -> None:
    for content in ("", "{}", '{"format": "fedassay.questions/1", "uncharged": -5}'):
        (tmp_path / "questions.json").write_text(content)
        with pytest.raises(FileInvalid):
            Questions(tmp_path / "questions.json").ask()


def test_questions_asked_at_once_are_all_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one is asked from within the first one's decision, and has to wait for it."""
    asked = Questions(tmp_path / "questions.json")
    second = Thread(target=asked.ask)

    def during_the_first(count: int) -> int:
        monkeypatch.undo()
        second.start()
        second.join(0.3)
        assert second.is_alive()
        return count + 1

    monkeypatch.setattr(questions, "_one_more", during_the_first)
    asked.ask()
    second.join()
    assert asked.uncharged == 2
