"""How long a server waits for whom, and what it makes of the replies."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from flwr.app import ConfigRecord, Message, RecordDict

from fedassay import Grid as ScoreGrid
from fedassay import Hierarchy, Polya, Survey
from fedassay.engines.flower import conversation
from fedassay.engines.flower.conversation import Conversation
from fedassay.engines.flower.records import Answered, Declined, Question, read_reply, reply_content
from fedassay.engines.flower.settings import Route, RunSettings, fewest_sites
from fedassay.errors import SettingInvalid, TooFewReports
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy
from tests.clock import Clock
from tests.flowergrid import CONFIG, InProcessGrid
from tests.surveys import local_survey, small_survey

QUESTION = Question(b"", b"", b"?")


@dataclass
class Timed(InProcessGrid):
    """Sites that answer after so many seconds, by the test's clock; None never."""

    clock: Clock = field(default_factory=Clock)
    after: Mapping[int, float | None] = field(default_factory=dict)
    strangers: int = 0
    _due: dict[str, tuple[float, Message]] = field(default_factory=dict)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return [self._posted(message) for message in messages]

    def _posted(self, message: Message) -> str:
        node = message.metadata.dst_node_id
        message.metadata.__dict__["_message_id"] = f"to {node}"
        seconds = self.after.get(node)
        if seconds is not None:
            reply = Message(reply_content(Answered(b"from %d" % node)), reply_to=message)
            self._due[f"to {node}"] = self.clock.now + seconds, reply
        return f"to {node}"

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        arrived = [name for name in message_ids if name in self._due]
        arrived = [name for name in arrived if self._due[name][0] <= self.clock.now]
        replies = [self._due.pop(name)[1] for name in arrived]
        for reply in replies[: self.strangers]:
            reply.metadata.__dict__["_reply_to_message_id"] = "to somebody else"
        return replies


def asked(
    monkeypatch: pytest.MonkeyPatch,
    after: Mapping[int, float | None],
    *,
    fewest: int = 2,
    strangers: int = 0,
) -> tuple[set[int], float, str]:
    """Who answered, when the stage was over, and who is missing."""
    clock = Clock()
    monkeypatch.setattr(conversation, "time", clock)
    grid = Timed({}, clock=clock, after=after, strangers=strangers)
    talk = Conversation(grid, fewest, stage_seconds=100.0, quiet_seconds=10.0)
    answers = talk.ask("keys", dict.fromkeys(after, QUESTION))
    assert all(payload == b"from %d" % site for site, payload in answers.items())
    return set(answers), clock.now, talk.missing()


@pytest.mark.parametrize(
    ("after", "answering", "over"),
    [
        # All are there: nobody waits.
        ({1: 0, 2: 3, 3: 5}, {1, 2, 3}, 5),
        # Enough are there, and then it is quiet for ten seconds.
        ({1: 0, 2: 3, 3: None}, {1, 2}, 13),
        ({1: 0, 2: 3, 3: 12}, {1, 2, 3}, 12),
        ({1: 0, 2: 3, 3: 30}, {1, 2}, 13),
        # Too few are there: the whole hundred seconds.
        ({1: 0, 2: 60, 3: None}, {1, 2}, 70),
        ({1: 0, 2: None, 3: None}, {1}, 100),
    ],
)
def test_a_stage_goes_on_until_enough_answered_and_it_is_quiet(
    monkeypatch: pytest.MonkeyPatch,
    after: dict[int, float | None],
    answering: set[int],
    over: float,
) -> None:
    answers, ended, missing = asked(monkeypatch, after)
    assert answers == answering
    assert over <= ended <= over + 1.0
    silent = len(after) - len(answering)
    assert missing == (f"{silent} silent at stage keys" if silent else "")


def test_a_reply_that_nobody_asked_for_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, _, missing = asked(monkeypatch, {1: 0, 2: 0, 3: 0}, strangers=1)
    assert answers == {2, 3}
    assert missing == "1 silent at stage keys"


def reply_with(fields: dict[str, Any], record: str = "fedassay") -> Message:
    InProcessGrid({})
    return Message(RecordDict({record: ConfigRecord(fields)}), dst_node_id=1, message_type="query")


@pytest.mark.parametrize(
    "fields",
    [
        {"payload": b"x", "site": "a"},
        {"protocol": 1, "payload": b"x", "site": "a"},
        {"protocol": True, "payload": b"x", "site": "a"},
        {"protocol": 2, "site": "a"},
        {"protocol": 2, "payload": b"x"},
        {"protocol": 2, "payload": "x", "site": "a"},
        {"protocol": 2, "payload": b"x", "site": "a", "more": b"y"},
    ],
)
def test_a_message_with_more_or_less_than_it_should_have_is_malformed(
    fields: dict[str, Any],
) -> None:
    right = {"protocol": 2, "payload": b"x", "site": "a"}
    assert read_reply(reply_with(right)) == Answered(b"x")
    reply = read_reply(reply_with(fields))
    assert isinstance(reply, Declined)
    assert reply.kind == "MessageMalformed"
    assert isinstance(read_reply(reply_with(right, "other")), Declined)


def test_what_a_site_says_forges_no_line_of_a_log() -> None:
    said = {
        "protocol": 2,
        "declined": "No\nStage keys: done",
        "reason": "a\x1b[2Jb\r" + "c" * 5000,
        "site": "a\n",
    }
    reply = read_reply(reply_with(said))
    assert isinstance(reply, Declined)
    assert reply.kind == "No Stage keys: done"
    assert reply.reason.startswith("a [2Jb c")
    assert (reply.kind + reply.reason).isprintable()
    assert len(reply.reason) == 1000


def test_a_round_needs_as_many_sites_as_its_terms() -> None:
    every = small_survey(minimum_reports=7)
    assert fewest_sites(every, Route.AGGREGATED) == 7
    assert fewest_sites(every, Route.TRUSTED) == 7
    assert fewest_sites(local_survey(), Route.REPORTED) == 1
    # On one level each: so many that seven draw either level but once in 2^40 rounds.
    half = Fraction(1, 2)
    one = Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=ScoreGrid.uniform(4),
        hierarchy=Hierarchy(4, (2, 2)),
        mechanisms=(Polya(Fraction(1), 1, 7),) * 2,
        minimum_reports=7,
        level_policy=OneLevel((half, half)),
    )
    assert 60 < fewest_sites(one, Route.AGGREGATED) < 80


@pytest.mark.parametrize("value", [3.9, True, "3", -1, 2**31 + 1])
def test_a_count_is_a_whole_number(value: object) -> None:
    with pytest.raises(SettingInvalid, match="sites must be a whole number"):
        RunSettings.from_config({**CONFIG, "sites": value})


def test_a_second_survey_is_asked_of_those_that_are_still_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    talk = Conversation(InProcessGrid({1: {}, 2: {}, 5: {}}), 2, stage_seconds=1, quiet_seconds=1)
    assert talk.still_there([1, 2, 3]) == [1, 2]
    assert talk.missing() == "1 left after the first survey"
    assert "Without site 3: left after the first survey." in capsys.readouterr().out
    with pytest.raises(TooFewReports, match=r"2 of the 3 sites .* 1 are connected"):
        talk.still_there([1, 3, 4])
