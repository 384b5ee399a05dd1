"""Real processes in trouble: bad tables, wrong clocks, a SuperLink that goes away."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from examples.four_hospitals.hospitals import open_hospital
from examples.four_hospitals.processes import Federation, leftovers

from fedassay import Examples
from fedassay.assessment import Assessment
from fedassay.engines.flower.credentials import make_certificates
from tests.endtoend.test_flower import (
    CANARY,
    SETTINGS,
    assert_nothing_leaked,
    charges,
    exact_sum,
    spying_app,
)
from tests.tables import ROOT


def examples(seed: int) -> Examples:
    rng = np.random.default_rng(seed)
    scores = np.append(rng.random(2_000), CANARY)
    return Examples((rng.random(2_001) < scores).astype(int), scores)


def test_trouble_ends_in_clear_errors_and_the_next_run_works(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certificates", ["127.0.0.1"])
    hospitals = [
        open_hospital(tmp_path / name, examples(seed), pinned=False, colluders=0)
        for seed, name in enumerate(("north", "east", "south", "west", "early"))
    ]
    *sound, west, early = hospitals
    table = {"scores": [CANARY, 0.5], "outcome": [1, 0]}
    pq.write_table(pa.table(table), west.folder / "scores" / "scores.parquet")
    settings = {
        **SETTINGS,
        "privacy": "distributed",
        "epsilon": "1",
        "steps": "1",
        "sites": 4,
        "minimum-reports": 3,
    }
    settings["colluders"] = 0
    output = tmp_path / "assessment.json"
    skew = Path(__file__).parent / "skew"
    with Federation(tmp_path) as federation:
        federation.start_superlink()
        federation.register(*(Path(f"{hospital.key}.pub") for hospital in hospitals))
        for hospital in sound:
            federation.start_site(hospital.name, hospital.key, hospital.config)
        federation.start_site(west.name, west.key, west.config, locked=False)
        federation.environment = {
            "PYTHONPATH": f"{skew}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "SKEW_SECONDS": "60",
        }
        federation.start_site(early.name, early.key, early.config, locked=False)
        federation.environment = {}
        federation.wait_for_sites(*(hospital.name for hospital in (*sound, west)))

        # The SuperLink goes away once the first masked counts may have left.
        def vanish(line: str) -> None:
            if line.startswith("Stage shares:"):
                federation.wait_for(
                    sound[0].name, lambda log: "answered stage masked" in log, seconds=300
                )
                federation.kill("superlink")

        lost = federation.run({**settings, "output": str(output)}, on_line=vanish)
        assert lost.failed
        assert not output.exists()
        assert "Stage keys: 3 of 4 sites answered" in lost.log
        assert "declined stage keys, SiteDeclined: the site's log says what to do" in lost.log
        assert charges(sound[0]) == ["1"]
        assert 'there is no column "risk"' in federation.log(west.name)
        # Flower turns away whose clock is more than 5 seconds ahead.
        federation.wait_for_end(early.name)
        assert "SuperNode ID" not in federation.log(early.name)
        assert 'activate-node HTTP/1.1" 401' in federation.log("superlink")

        federation.start_superlink()
        found = federation.run(
            {**settings, "sites": 3, "output": str(output)}, app=spying_app(tmp_path)
        )
        assert not found.failed, found.log
        # Only the site that is not locked ran the app that came along.
        assert set((tmp_path / "loot").read_text().split()) == {str(tmp_path / "homes" / "west")}
        assessment = Assessment.load(output)
        assert assessment.tally.reports == (3,) * assessment.survey.hierarchy.levels
        noise = assessment.tally.counters - exact_sum(assessment.survey, sound)
        assert 0 < np.abs(noise).max() < 200
        # What was charged stayed charged, and the second answer was charged too.
        assert charges(sound[0]) == ["1", "1"]
        assert charges(west) == charges(early) == []
    assert leftovers(tmp_path) == []
    assert_nothing_leaked(tmp_path)


def test_an_interrupted_walk_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "examples.four_hospitals"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as said:
        for line in said:
            if line.startswith("4. flwr run"):
                break
        (folder,) = tmp_path.iterdir()
        assert len(leftovers(folder)) >= 5
        process.send_signal(signal.SIGINT)
        assert said.read().rstrip().endswith("Stopped.")
    assert process.wait(30) == 130
    assert leftovers(folder) == []
    assert list(tmp_path.iterdir()) == []
