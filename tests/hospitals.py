"""Hospitals for the Flower engine in one process, and what is asked of them."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
from examples.four_hospitals.hospitals import Hospital, open_hospital, share_roster
from flwr.app import Message, RecordDict

from fedassay import Examples
from fedassay.assessment import Assessment
from fedassay.engines.flower import client_app
from fedassay.engines.flower.records import Answered, Declined, Question, question_content
from fedassay.engines.flower.records import read_reply as reply_of
from fedassay.engines.flower.settings import RunSettings
from fedassay.examples import IntArray
from fedassay.files import canonical
from fedassay.ledger import Charge, Ledger
from tests.flowergrid import CONFIG, InProcessGrid, context_of

CANARY = 0.7310585786300049
STAGES = ("keys", "shares", "masked", "confirm", "unmask")


def rows(count: int, seed: int = 1) -> Examples:
    rng = np.random.default_rng(seed)
    scores = np.append(rng.random(count), CANARY)
    return Examples((rng.random(count + 1) < scores).astype(int), scores)


def hospitals(folder: Path, *, pinned: bool = True, count: int = 4) -> list[Hospital]:
    opened = [
        open_hospital(folder / f"h{i}", rows(50 + i, seed=i), pinned=pinned, colluders=0)
        for i in range(count)
    ]
    if pinned:
        share_roster(folder, opened)
    return opened


def settings(folder: Path, **changes: str | float | bool) -> RunSettings:
    config: dict[str, object] = {
        **CONFIG, "sites": 4, "minimum-reports": 3, "colluders": 0, "height": 4, "fanout": 2,
    }  # fmt: skip
    if (folder / "roster.json").exists() and changes.get("privacy") != "local":
        config["roster"] = str(folder / "roster.json")
    config.update({name.replace("_", "-"): value for name, value in changes.items()})
    return RunSettings.from_config(config)


def configs(sites: list[Hospital]) -> dict[int, Mapping[str, str]]:
    return {number: site.config for number, site in enumerate(sites, 1)}


def exact_sum(assessment: Assessment, sites: list[Hospital]) -> IntArray:
    counters = (site.counters(assessment.survey) for site in sites)
    return sum(counters, np.zeros(1, dtype=np.int64))


def charged(site: Hospital) -> list[Fraction | None]:
    entries = Ledger(site.folder / "site" / "ledger.db").entries()
    return [entry.content.epsilon for entry in entries if isinstance(entry.content, Charge)]


def edit(site: Hospital, old: str, new: str) -> None:
    path = site.folder / "site" / "site.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def ask(site: Hospital, stage: str, content: RecordDict) -> Answered | Declined:
    InProcessGrid({})
    message = Message(content, dst_node_id=1, message_type=f"query.{stage}", ttl=60)
    return reply_of(client_app.app(message, context_of(1, site.config)))


def question(folder: Path, **changes: bytes) -> RecordDict:
    run = settings(folder, privacy="local", epsilon="5")
    fields = {"survey": canonical(run.survey.to_json()), "round_id": b"", "payload": b"local"}
    return question_content(Question(**{**fields, **changes}))
