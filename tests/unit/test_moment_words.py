"""Moments on their way: the same sums by files, by secure aggregation and in simulation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import fedassay
from fedassay.client import OPEN_POLICY
from fedassay.decoding import DecodeOptions
from fedassay.engines.in_process import InProcess
from fedassay.errors import CountOverflow, FileInvalid, ReportMalformed
from fedassay.examples import Examples, ScoredClients
from fedassay.files import canonical
from fedassay.randomness import SimulatedRandomness, SystemRandomness
from fedassay.simulation.simulate import clients, tally_clients, tally_each_client
from fedassay.sites import SummedSites
from fedassay.sites.moment_words import moment_words, moments_by_metric
from fedassay.tally import Tally, TallyBuilder
from fedassay.tally_file import KeptTally
from fedassay.wire import Report

SITES, ROWS = 7, 200


def cohort(sites: int = SITES, rows: int = ROWS) -> ScoredClients:
    generator = np.random.default_rng(5)
    owner = np.repeat(np.arange(sites), rows)
    labels = generator.integers(0, 2, sites * rows)
    apart = generator.normal(1.0, 0.4, sites)[owner]
    scores = 1.0 / (1.0 + np.exp(-(apart * labels + generator.normal(size=sites * rows))))
    return ScoredClients(Examples(labels, scores), owner, sites)


def survey(**settings: object) -> fedassay.Survey:
    return fedassay.new_survey(site_moments=True, **settings)  # type: ignore[arg-type]  # settings by name


def brute_force(asked: fedassay.Survey, held: ScoredClients) -> list[int]:
    words = [moment_words(asked, asked.grid.count(each)).tolist() for each in clients(held)]
    return [sum(column) for column in zip(*words, strict=True)]


def test_a_site_adds_a_one_and_the_logit_of_its_own_area() -> None:
    asked, held = survey(smallest_cell=0), cohort()
    step = 2 ** (31 - asked.moments.most_sites.bit_length() - 3)  # type: ignore[union-attr]  # settings by name
    for examples in clients(held):
        words = moment_words(asked, asked.grid.count(examples))
        area = roc_auc_score(examples.labels, examples.scores)
        assert words[0] == 1
        assert words[1] / step == pytest.approx(np.log(area / (1 - area)), abs=2e-2)


def test_a_site_without_an_effect_adds_as_many_words_all_zero() -> None:
    asked = survey(height=4, smallest_cell=0)
    one_class = asked.grid.count(Examples([0] * 50, [i / 50 for i in range(50)]))
    few = asked.grid.count(Examples([0, 1] * 9, [0.2, 0.7] * 9))
    for counts in (one_class, few, np.zeros_like(few)):
        assert moment_words(asked, counts).tolist() == [0] * 20


def test_files_secure_aggregation_and_simulation_give_the_same_sums() -> None:
    asked, held = survey(height=4, smallest_cell=0), cohort(5, 60)
    expected = brute_force(asked, held)
    assert expected[0] == 5
    randomness = SimulatedRandomness(np.random.SeedSequence(1))
    answers = [
        fedassay.answer(asked, each.labels, each.scores, policy=OPEN_POLICY).to_bytes()
        for each in clients(held)
    ]
    for tally in (
        fedassay.tally_answers(asked, answers).tally,
        InProcess(held, SystemRandomness()).tally(asked),
        tally_clients(asked, held, randomness=randomness),
        tally_each_client(asked, held, randomness=randomness),
    ):
        assert tally.moments.tolist() == expected
        assert len(tally.counters) == asked.hierarchy.width


def released(sites: int = SITES) -> fedassay.Assessment:
    asked, held = survey(height=4, smallest_cell=0), cohort(sites)
    randomness = SimulatedRandomness(np.random.SeedSequence(1))
    return fedassay.Assessment(
        asked, tally_clients(asked, held, randomness=randomness), DecodeOptions()
    )


def test_an_assessments_file_keeps_the_sums_and_gives_the_same_again(tmp_path: Path) -> None:
    made = released()
    made.save(tmp_path / "a.json")
    again = fedassay.load(tmp_path / "a.json")
    assert isinstance(again, fedassay.Assessment)
    assert isinstance(again.sites, SummedSites)
    for metric in ("roc_auc", "oe_ratio"):
        assert again.heterogeneity(metric).to_json() == made.heterogeneity(metric).to_json()
    assert made.heterogeneity("roc_auc").sites == SITES


def test_sums_of_fewer_than_five_effects_are_not_published() -> None:
    """Three of seven sites have one class: whoever adds up sees the sums, nobody else does."""
    asked, held = survey(height=4, smallest_cell=0), cohort()
    labels = held.examples.labels.copy()
    labels[: 3 * ROWS] = 0
    lacking = ScoredClients(Examples(labels, held.examples.scores), held.client_of_row, SITES)
    tally = tally_clients(asked, lacking, randomness=SimulatedRandomness(np.random.SeedSequence(1)))
    assert tally.moments[0] == 4
    assert tally.moments[1] != 0
    made = fedassay.Assessment(asked, tally, DecodeOptions())
    assert made.to_json()["moments"]["roc_auc"] == (4, 0, 0, 0, 0)
    assert "at least 5 honest sites" in made.heterogeneity("roc_auc").notes[0]
    assert np.isnan(made.heterogeneity("roc_auc").mean)
    # Colluders know their own effects: they are not among the five.
    watchful = replace(asked, colluders=1, minimum_reports=7)
    assert moments_by_metric(watchful, [5, 1, 1, 1, 1] * 4)["roc_auc"] == (5, 0, 0, 0, 0)
    assert moments_by_metric(watchful, [6, 1, 1, 1, 1] * 4)["roc_auc"] == (6, 1, 1, 1, 1)


def test_a_tally_file_keeps_the_sums_for_its_owner() -> None:
    asked = survey(height=4, smallest_cell=0)
    kept = KeptTally(asked, tally_of(asked, 2))
    assert KeptTally.from_bytes(kept.to_bytes()).tally == kept.tally
    assert kept.tally.moments.any()


def tally_of(asked: fedassay.Survey, sites: int) -> Tally:
    answers = [
        fedassay.answer(asked, each.labels, each.scores, policy=OPEN_POLICY)
        for each in clients(cohort(sites))
    ]
    return Tally.of(asked, [message for each in answers for message in each.messages])


def test_a_report_with_other_moments_is_refused_and_nothing_counts() -> None:
    asked = survey(height=4, smallest_cell=0)
    counters = np.zeros(asked.hierarchy.width, dtype=np.int64)
    builder = TallyBuilder(tally_of(asked, 2), asked)
    before = builder.tally()
    short = Report(asked.fingerprint, b"1" * 16, counters, moments=np.zeros(5, dtype=np.int64))
    with pytest.raises(ReportMalformed, match="20 moments"):
        builder.add(short)
    huge = Report(asked.fingerprint, b"2" * 16, counters, moments=np.full(20, 2**31 - 1))
    with pytest.raises(CountOverflow, match="moments"):
        builder.add(huge)
    assert builder.tally() == before


def test_a_file_whose_moments_do_not_fit_its_survey_is_refused(tmp_path: Path) -> None:
    content = released().to_json()
    path = tmp_path / "a.json"
    for moments in (
        {"roc_auc": [1, 2, 3, 4, 5]},
        {**content["moments"], "roc_auc": [1, 2, 3, 4]},
        {**content["moments"], "roc_auc": [2**40] * 5},
        [1, 2, 3],
    ):
        path.write_bytes(canonical({**content, "moments": moments}))
        with pytest.raises(FileInvalid):
            fedassay.load(path)


def test_a_report_leaves_with_its_moments() -> None:
    asked = survey(height=4, smallest_cell=0)
    whole = tally_of(asked, 3)
    (message,) = fedassay.answer(asked, [0, 1] * 40, [0.3, 0.6] * 40, policy=OPEN_POLICY).messages
    builder = TallyBuilder(whole, asked)
    builder.add(message)
    assert builder.tally() != whole
    assert builder.tally().without(Tally.of(asked, [message])) == whole
