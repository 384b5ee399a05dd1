"""The same app in Flower's simulation runtime."""

from pathlib import Path

import numpy as np
from examples.four_hospitals.hospitals import open_hospitals
from examples.four_hospitals.processes import Federation, leftovers

from fedassay.assessment import Assessment
from fedassay.engines.flower.credentials import make_certificates


def test_the_same_app_runs_in_flowers_simulation_runtime(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certificates", ["127.0.0.1"])
    hospitals = open_hospitals(tmp_path, pinned=False)
    for number, hospital in enumerate(hospitals):
        lines = [f'{name} = "{value}"\n' for name, value in hospital.config.items()]
        (tmp_path / f"{number}.toml").write_text("".join(lines))
    output = tmp_path / "assessment.json"
    with Federation(tmp_path) as federation:
        federation.start_simulation(virtual_sites=5)
        run = federation.run(
            {
                "privacy": "secure",
                "smallest-cell": "0",
                "sites": 5,
                "simulation": str(tmp_path),
                "output": str(output),
            }
        )
        assert not run.failed, run.log + federation.log("superlink")
    assessment = Assessment.load(output)
    exact = np.sum([site.counters(assessment.survey) for site in hospitals], axis=0)
    assert assessment.tally.counters.tolist() == exact.tolist()
    assert assessment.tally.reports == (5,)
    assert leftovers(tmp_path) == []
