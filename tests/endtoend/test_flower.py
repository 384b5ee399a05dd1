"""Real processes on loopback: a SuperLink with TLS and node authentication, SuperNodes, runs."""

import math
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from examples.four_hospitals.hospitals import (
    Hospital,
    open_hospital,
    open_hospitals,
    share_roster,
)
from examples.four_hospitals.processes import APP, Federation, Run, leftovers

from fedassay import Examples, Survey
from fedassay.assessment import Assessment
from fedassay.engines.flower.credentials import make_certificates, make_node_key
from fedassay.examples import IntArray
from fedassay.ledger import Charge, Ledger

CANARY = 0.7310585786300049
CANARY_BYTES = struct.pack("<d", CANARY)
SETTINGS: dict[str, str | int | float] = {
    "sites": 5,
    "minimum-reports": 4,
    "examples": 65_000,
    "stage-seconds": 120,
    "quiet-seconds": 20,
}


def with_canary(examples: Examples) -> Examples:
    return Examples(
        np.append(examples.labels[:5_000], [1, 0]), np.append(examples.scores[:5_000], [CANARY] * 2)
    )


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    make_certificates(tmp_path / "certificates", ["127.0.0.1"])
    with Federation(tmp_path) as federation:
        federation.start_superlink()
        yield federation
    assert leftovers(tmp_path) == []


def killer(federation: Federation, victim: Hospital, after: str) -> Callable[[str], None]:
    def follow(line: str) -> None:
        if line.startswith(after):
            federation.kill(victim.name)

    return follow


def assert_nothing_leaked(folder: Path) -> None:
    """No log, message store, ledger or state holds the canary, as text or as bytes."""
    searched = 0
    for path in folder.rglob("*"):
        if not path.is_file() or "scores" in path.relative_to(folder).parts:
            continue
        content = path.read_bytes()
        searched += len(content)
        assert b"0.73105857" not in content, path
        assert CANARY_BYTES not in content, path
    assert searched > 10_000


def spying_app(folder: Path) -> Path:
    """An app whose client takes the table, where a site runs it."""
    app = folder / "spy"
    shutil.copytree(APP, app)
    (app / "fedassay_flower" / "client_app.py").write_text(
        "import os\n"
        "from fedassay.engines.flower.client_app import app\n"
        "__all__ = ['app']\n"
        f"with open({str(folder / 'loot')!r}, 'a') as stream:\n"
        "    stream.write(os.environ['FLWR_HOME'] + '\\n')\n"
    )
    return app


def charges(hospital: Hospital) -> list[str | None]:
    entries = Ledger(hospital.folder / "site" / "ledger.db").entries()
    return [
        None if entry.content.epsilon is None else str(entry.content.epsilon)
        for entry in entries
        if isinstance(entry.content, Charge)
    ]


def exact_sum(survey: Survey, hospitals: list[Hospital]) -> IntArray:
    return sum((hospital.counters(survey) for hospital in hospitals), np.zeros(1, dtype=np.int64))


def test_four_hospitals_one_killed_under_each_privacy_model(
    federation: Federation, tmp_path: Path
) -> None:
    opened = open_hospitals(tmp_path / "sample")
    hospitals = [
        open_hospital(tmp_path / hospital.name, with_canary(hospital.examples))
        for hospital in opened
    ]
    share_roster(tmp_path, hospitals)
    federation.register(*(Path(f"{hospital.key}.pub") for hospital in hospitals))
    for hospital in hospitals:
        federation.start_site(hospital.name, hospital.key, hospital.config)
    make_node_key(tmp_path / "stranger" / "node.key")
    federation.start_site(
        "stranger", tmp_path / "stranger" / "node.key", hospitals[0].config, locked=False
    )
    federation.wait_for_sites(*(hospital.name for hospital in hospitals))
    *survivors, victim = hospitals

    def run(
        settings: dict[str, str | int | float], after: str, app: Path = APP
    ) -> tuple[Run, Assessment]:
        output = tmp_path / "assessment.json"
        output.unlink(missing_ok=True)
        found = federation.run(
            {**SETTINGS, **settings, "output": str(output)},
            on_line=killer(federation, victim, after),
            app=app,
        )
        assert not found.failed, found.log
        return found, Assessment.load(output)

    pins = {"roster": str(tmp_path / "roster.json")}
    found, assessment = run({"privacy": "secure", "smallest-cell": "0", **pins}, "Stage shares:")
    survey = assessment.survey
    assert assessment.tally.reports == (4,) * survey.hierarchy.levels
    assert (assessment.tally.counters == exact_sum(survey, survivors)).all()
    assert "silent at stage masked" in found.log
    assert [charges(hospital) for hospital in hospitals] == [*[[None]] * 4, []]

    assert federation.wait_for_end("stranger") != 0
    assert "Failed to activate SuperNode" in federation.log("stranger")
    assert "No SuperNode found with the given public key" in federation.log("superlink")

    federation.restart_site(victim.name, victim.key, victim.config)
    # The planner asks this in two steps; who is lost in the first is not asked the second.
    found, assessment = run(
        {"privacy": "distributed", "epsilon": "1", **pins}, "Stage keys, first of two:"
    )
    assert assessment.first is not None
    assert "Stage unmask, second of two: 4 of 4 sites answered" in found.log
    survey = assessment.first.survey
    for step in (assessment.first, assessment):
        assert step.tally.reports == (4,) * step.survey.hierarchy.levels
    noise = assessment.first.tally.counters - exact_sum(survey, survivors)
    # Discrete Laplace noise of scale 3 / (1/5) in each of fewer than 2,000 cells passes this
    # bound with probability below 1e-9.
    assert survey.hierarchy.levels == 3
    assert 0 < np.abs(noise).max() < 15 * math.log(2_000 / 1e-9)
    assert [charges(hospital) for hospital in survivors] == [[None, "1", "0"]] * 4
    assert charges(victim) == []

    federation.restart_site(victim.name, victim.key, victim.config)
    # This run brings another app along; the sites answer with the one that they installed.
    _, assessment = run(
        {"privacy": "local", "epsilon": "5", "steps": "1"},
        "5 sites are connected.",
        spying_app(tmp_path),
    )
    assert sum(assessment.tally.reports) == sum(len(site.examples) for site in survivors)
    assert [charges(hospital) for hospital in survivors] == [[None, "1", "0", "5"]] * 4
    assert charges(victim) == []
    assert not (tmp_path / "loot").exists()
    assert not any((tmp_path / "homes" / site.name / "apps").exists() for site in survivors)

    federation.stop()
    assert_nothing_leaked(tmp_path)
