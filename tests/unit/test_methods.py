"""One table of calibrators: whichever door is taken, the map is the same to the last bit."""

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fedassay import Assessment, Examples, Hierarchy, Privacy, ScoreHistogram, SurveyRequest
from fedassay.calibration import (
    METHODS,
    AutoCalibrator,
    BBQCalibrator,
    BetaCalibrator,
    BinningCalibrator,
    Calibrator,
    IsotonicCalibrator,
    Method,
    SigmoidCalibrator,
    SmoothCalibrator,
    TemperatureCalibrator,
    fit,
)
from fedassay.calibration.estimators import HistogramCalibrator
from fedassay.calibration.methods import CANDIDATES
from fedassay.cli.app import app
from fedassay.cli.calibrate import CHOICES
from fedassay.decoding import DecodeOptions
from fedassay.errors import SettingInvalid
from fedassay.examples import ScoredClients
from fedassay.noise import NoNoise, TreeNoise
from fedassay.planning.search import design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import tally_clients

CLIENTS = 6_000
MODELS = {
    Privacy.SECURE: None,
    Privacy.DISTRIBUTED: Fraction(1),
    Privacy.LOCAL: Fraction(5),
}
ESTIMATORS: dict[Method | None, type[HistogramCalibrator]] = {
    None: AutoCalibrator,
    Method.TEMPERATURE: TemperatureCalibrator,
    Method.SIGMOID: SigmoidCalibrator,
    Method.BETA: BetaCalibrator,
    Method.SMOOTH: SmoothCalibrator,
    Method.ISOTONIC: IsotonicCalibrator,
    Method.BINNING: BinningCalibrator,
    Method.BBQ: BBQCalibrator,
}


@cache
def assessed(privacy: Privacy) -> Assessment:
    generator = np.random.default_rng(3)
    scores = generator.beta(1.2, 1.8, CLIENTS)
    labels = (generator.random(CLIENTS) < scores**2).astype(np.uint8)
    design = design_survey(SurveyRequest(privacy=privacy, epsilon=MODELS[privacy], clients=CLIENTS))
    tally = tally_clients(
        design.survey,
        ScoredClients(Examples(labels, scores), None, CLIENTS),
        randomness=SimulatedRandomness(5),
    )
    return Assessment(design.survey, tally, design.decode_options)


def by_command_line(privacy: Privacy, name: str, folder: Path) -> Calibrator:
    source, target = folder / "assessment.json", folder / "calibrator.json"
    assessed(privacy).save(source)
    command = ["calibrate", str(source), "--method", name, "-o", str(target)]
    assert CliRunner().invoke(app, command).exit_code == 0
    return Calibrator.load(target)


@pytest.mark.parametrize("privacy", MODELS)
@pytest.mark.parametrize("name", CHOICES)
def test_every_door_gives_the_same_map_to_the_last_bit(
    privacy: Privacy, name: str, tmp_path: Path
) -> None:
    method = None if name == "auto" else Method(name)
    histogram = assessed(privacy).histogram()
    library = fit(histogram, method)
    estimator = ESTIMATORS[method]().fit_histogram(histogram).calibrator_
    for other in (estimator, by_command_line(privacy, name, tmp_path)):
        assert other.method is library.method
        assert other.interpolation is library.interpolation
        assert other.edges.tobytes() == library.edges.tobytes()
        assert other.values.tobytes() == library.values.tobytes()
        assert other.reason == library.reason


def test_every_method_has_a_row_an_estimator_and_a_name_on_the_command_line() -> None:
    assert set(METHODS) == set(Method)
    assert all(row.method is method for method, row in METHODS.items())
    assert set(ESTIMATORS) == {None, *Method} - {Method.NONE}
    assert set(CHOICES) == {"auto", *(method.value for method in Method)} - {"none"}
    assert all(row.summary for row in METHODS.values())


def test_candidates_come_from_the_fewest_degrees_of_freedom_on() -> None:
    assert [method.value for method in CANDIDATES] == [
        *("none", "temperature", "sigmoid", "beta", "smooth", "isotonic", "bbq")
    ]


def test_the_number_of_local_buckets_follows_from_the_noise_that_the_histogram_carries() -> None:
    """10,000 examples spread evenly: sqrt(0.25 x 100) = 5 buckets, and not 10,000^(1/3) = 22."""
    counts, variances = np.full((2, 1000), 5.0), (np.ones((2, 1000)),)
    edges = np.arange(1001) / 1000
    local = TreeNoise(Hierarchy.flat(1000), variances, local_epsilon=0.25)
    once = TreeNoise(Hierarchy.flat(1000), variances)
    for noise, buckets in ((local, 5), (once, 22), (NoNoise(), 22)):
        histogram = ScoreHistogram(edges, counts, noise)
        calibrator = fit(histogram, Method.BINNING, noise_aware=False)
        # Cells do not divide evenly by 22, which makes one bucket more.
        assert len(calibrator.values) in (buckets, buckets + 1)
        # Merging cells first changes nothing.
        halves = histogram.merge(np.arange(0, 1001, 2))
        merged = fit(halves, Method.BINNING, noise_aware=False)
        assert len(merged.values) in (buckets, buckets + 1)


def test_a_decoded_histogram_carries_the_local_epsilon_of_its_survey() -> None:
    expected = {Privacy.SECURE: None, Privacy.DISTRIBUTED: None, Privacy.LOCAL: 5.0}
    for reconcile in (True, False):
        options = DecodeOptions(reconcile=reconcile)
        decoded = {
            p: Assessment(assessed(p).survey, assessed(p).tally, options).histogram()
            for p in MODELS
        }
        assert {p: each.noise.local_epsilon for p, each in decoded.items()} == expected


@pytest.mark.parametrize("wrong", ["isotonic", "rubbish", 3, ["bbq"]])
def test_a_method_as_text_is_refused_with_the_members(wrong: object) -> None:
    histogram = assessed(Privacy.SECURE).histogram()
    with pytest.raises(SettingInvalid, match=r"member of Method.*Method\.ISOTONIC") as refused:
        fit(histogram, wrong)  # type: ignore[arg-type]  # what a user may pass
    assert all(f"Method.{method.name}" in str(refused.value) for method in Method)


def test_a_map_that_changes_ranks_is_refused_at_every_door(tmp_path: Path) -> None:
    histogram = assessed(Privacy.LOCAL).histogram()
    assert not fit(histogram, Method.BINNING).is_monotone
    with pytest.raises(SettingInvalid, match="falls at"):
        fit(histogram, Method.BINNING, monotone=True)
    with pytest.raises(SettingInvalid, match="falls at"):
        BinningCalibrator(monotone=True).fit_histogram(histogram)
    source, target = tmp_path / "assessment.json", tmp_path / "calibrator.json"
    assessed(Privacy.LOCAL).save(source)
    command = ["calibrate", str(source), "--method", "binning", "--monotone", "-o", str(target)]
    assert CliRunner().invoke(app, command).exit_code != 0
    assert not target.exists()


def test_auto_that_is_told_to_ignore_the_noise_does() -> None:
    histogram = assessed(Privacy.LOCAL).histogram()
    aware, blind = (fit(histogram, noise_aware=aware) for aware in (True, False))
    estimator = AutoCalibrator(noise_aware=False).fit_histogram(histogram)
    assert estimator.calibrator_.values.tobytes() == blind.values.tobytes()
    assert aware.reason != blind.reason
