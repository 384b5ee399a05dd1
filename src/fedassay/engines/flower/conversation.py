"""The server's side of talking to sites: ask all, wait, and say who answered."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedassay.engines.flower.from_flower import Grid, Message
from fedassay.engines.flower.progress import say
from fedassay.engines.flower.records import (
    Answered,
    Declined,
    Question,
    Reply,
    question_content,
    read_reply,
)
from fedassay.errors import MessageTooLarge, TooFewReports

_POLL_SECONDS = 0.5
_CLOCK_SLACK_SECONDS = 600
"""Messages stay valid for longer than they are waited for, because clocks differ."""


@dataclass(slots=True)
class Conversation:
    """One run's messages; remembers who declined and who fell silent."""

    grid: Grid
    fewest: int
    """With fewer sites than this there is no result."""
    stage_seconds: float
    """A site that is silent for this long at a stage has dropped out,"""
    quiet_seconds: float
    """or for this long since another site's answer, once enough have answered."""
    step: str = ""
    """Which of two surveys is asked, in words."""
    absent: Counter[str] = field(default_factory=Counter)
    """Why sites are missing from the result, and how many for each reason."""
    names: dict[int, str] = field(default_factory=dict)
    """What sites are called: by the roster where identities are pinned, else by themselves."""

    def gather(self, sites: int, wait_seconds: float) -> list[int]:
        """Wait until enough sites are connected."""
        say(f"Waiting for {sites} sites, at most {wait_seconds:g} s.")
        end = time.monotonic() + wait_seconds
        while len(found := sorted(self.grid.get_node_ids())) < sites and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
        if len(found) < self.fewest:
            raise TooFewReports(
                f"this survey needs {self.fewest} sites; {len(found)} are connected after "
                f"{wait_seconds:g} s. Start more SuperNodes, or wait longer (wait-seconds)."
            )
        say(f"{len(found)} sites are connected.")
        return found

    def still_there(self, sites: Sequence[int]) -> list[int]:
        """Those of these sites that are connected, if they are enough."""
        connected = set(self.grid.get_node_ids())
        found = [site for site in sites if site in connected]
        for site in set(sites) - connected:
            self.note(site, "left after the first survey")
        if len(found) < self.fewest:
            raise TooFewReports(
                f"this survey needs {self.fewest} of the {len(sites)} sites that answered the "
                f"first; {len(found)} are connected. Wait until they are back."
            )
        return found

    def ask(self, stage: str, questions: Mapping[int, Question]) -> dict[int, bytes]:
        """Ask each site its own question; returns the answers that came in time."""
        begun = latest = time.monotonic()
        asked = self._push(stage, questions)
        replies: dict[int, Reply] = {}
        while True:
            for message in self.grid.pull_messages(list(asked)):
                site = asked.pop(message.metadata.reply_to_message_id, None)
                if site is not None:
                    replies[site], latest = read_reply(message), time.monotonic()
                    if replies[site].site:
                        self.names.setdefault(site, replies[site].site)
            if not asked or self._is_over(begun, latest, len(replies)):
                break
            time.sleep(_POLL_SECONDS)
        for site in asked.values():
            self.note(site, f"silent at stage {stage}")
        for site, reply in replies.items():
            if isinstance(reply, Declined):
                self.note(site, f"declined stage {stage}, {reply.kind}", reply.reason)
        answers = {
            site: reply.payload for site, reply in replies.items() if isinstance(reply, Answered)
        }
        taken = time.monotonic() - begun
        say(
            f"Stage {stage}{self.step}: {len(answers)} of {len(questions)} sites answered in "
            f"{taken:.0f} s."
        )
        return answers

    def _is_over(self, begun: float, latest: float, replies: int) -> bool:
        now = time.monotonic()
        is_quiet = replies >= self.fewest and now - latest > self.quiet_seconds
        return is_quiet or now - begun > self.stage_seconds

    def note(self, site: int, what: str, why: str = "") -> None:
        """Remember, and say, that a site is missing from here on."""
        self.absent[what] += 1
        say(f"Without {self.called(site)}: {what}{': ' if why else '.'}{why}")

    def called(self, site: int) -> str:
        """A site's name, as a sentence has it."""
        return f"site {self.name(site)}"

    def name(self, site: int) -> str:
        """A site's name, with Flower's number where it has none or shares it."""
        name = self.names.get(site)
        if name is None:
            return str(site)
        shared = list(self.names.values()).count(name) > 1
        return f"{name} ({site})" if shared else name

    def missing(self) -> str:
        """Who is missing, in one line."""
        return "; ".join(f"{count} {what}" for what, count in self.absent.items())

    def _push(self, stage: str, questions: Mapping[int, Question]) -> dict[str, int]:
        sites = list(questions)
        messages = [
            Message(
                question_content(questions[site]),
                dst_node_id=site,
                message_type=f"query.{stage}",
                ttl=self.stage_seconds + _CLOCK_SLACK_SECONDS,
                group_id=stage,
            )
            for site in sites
        ]
        ids = list(self.grid.push_messages(messages))
        if len(ids) != len(sites):
            raise MessageTooLarge(
                f"the SuperLink must take {len(sites)} messages for stage {stage}; it took "
                f"{len(ids)}. Start a survey with fewer cells, or look at the SuperLink's log."
            )
        for site, message_id in zip(sites, ids, strict=True):
            if not message_id:
                self.note(site, f"the SuperLink took no message for stage {stage}")
        return {message_id: site for site, message_id in zip(sites, ids, strict=True) if message_id}
