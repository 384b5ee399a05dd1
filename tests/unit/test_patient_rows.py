"""Which rows of a patient count: limited before anything is counted, inside one site."""

import csv
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedassay
from fedassay import Examples, Grid, Hierarchy, Survey, SystemRandomness, Tally, Unit
from fedassay.client import OPEN_POLICY, answer_counts
from fedassay.engines.in_process import InProcess
from fedassay.engines.report_files import answer_file
from fedassay.errors import ColumnTypeInvalid, FileInvalid, SettingInvalid, ValueMissing
from fedassay.examples import ScoredClients
from fedassay.ledger import Charge, Part
from fedassay.ledger.charge import Status
from fedassay.mechanisms import Exact, Keep, Polya, Privacy, UnaryEncoding, UnitKind
from fedassay.patient_rows import kept_rows, limited_rows
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import AtOnce, EachClient, rows_counted, tally_clients
from fedassay.survey_json import survey_from_json
from fedassay.survey_steps import FirstOfTwo
from fedassay.tables.columns import Columns
from fedassay.tables.reading import count_patients_file, read_clients

SYSTEM = SystemRandomness()
LATEST = Unit(UnitKind.PATIENT, 2, Keep.LATEST)
RANDOM = Unit(UnitKind.PATIENT, 2)


def survey_of(unit: Unit, privacy: Privacy = Privacy.SECURE) -> Survey:
    mechanisms: dict[Privacy, Any] = {
        Privacy.SECURE: Exact(),
        Privacy.DISTRIBUTED: Polya(Fraction(1), unit.sensitivity, 2),
        Privacy.SITE: Polya(Fraction(1), unit.sensitivity, 1),
        Privacy.LOCAL: UnaryEncoding(Fraction(5)),
    }
    return Survey(
        privacy=privacy,
        grid=Grid.uniform(8),
        hierarchy=Hierarchy.flat(8),
        mechanisms=(mechanisms[privacy],),
        unit=unit,
        minimum_reports=2,
    )


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=40), st.integers(1, 4))
def test_at_most_so_many_rows_of_each_patient_are_kept_and_the_latest(
    rows: list[tuple[int, int]], most: int
) -> None:
    patients = np.array([patient for patient, _ in rows], dtype=np.int64)
    times = np.array([time for _, time in rows], dtype=np.float64)
    held = Counter(patients.tolist())
    expected = {patient: min(count, most) for patient, count in held.items()}
    for given_times in (None, times):
        kept = kept_rows(patients, most, times=given_times, randomness=SYSTEM)
        assert (np.diff(kept) > 0).all()
        assert Counter(patients[kept].tolist()) == expected
    for patient in held:
        own = sorted(times[patients == patient].tolist(), reverse=True)[:most]
        assert sorted(times[kept][patients[kept] == patient].tolist(), reverse=True) == own


def test_every_row_of_a_patient_is_as_likely_to_be_drawn() -> None:
    """Each of 6 rows is kept in 2 of 6 draws of 3,000; a false alarm of 1e-6 is 5.2 sd."""
    times = np.zeros(6)
    randomness = SimulatedRandomness(2)
    patients = np.zeros(6, dtype=np.int64)
    for _ in range(3000):
        times[kept_rows(patients, 2, times=None, randomness=randomness)] += 1
    sd = (3000 * (1 / 3) * (2 / 3)) ** 0.5
    assert np.abs(times - 1000).max() < 5.2 * sd


# --- At a site ---------------------------------------------------------------------------------


def write_csv(path: Path, rows: list[tuple[object, ...]]) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["score", "label", "person", "seen"])
        writer.writerows(rows)
    return path


VISITS: list[tuple[object, ...]] = [
    (0.10, 0, "ann", "2026-01-01"),
    (0.20, 0, "ann", "2026-03-01"),
    (0.30, 1, "bob", "2025-01-01"),
    (0.40, 0, "ann", "2026-02-01"),
    (0.90, 1, "ann", "2024-02-01"),
]
PEOPLE = Columns(patient="person", time="seen")


def test_a_file_counts_the_latest_rows_of_each_patient(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", VISITS)
    survey = survey_of(LATEST)
    counts, kept = count_patients_file(path, PEOPLE, survey, randomness=SYSTEM)
    assert kept == 3
    expected = survey.grid.count(Examples([0, 0, 1], [0.2, 0.4, 0.3]))
    assert counts.tolist() == expected.tolist()
    told: list[int] = []
    made = answer_file(
        survey, path, PEOPLE, randomness=SYSTEM, policy=OPEN_POLICY, counted=told.append
    )
    assert told == [3]
    alone = answer_file(survey, path, PEOPLE, randomness=SYSTEM, policy=OPEN_POLICY)
    assert Tally.of(survey, alone.messages).counters.tolist() == expected.ravel().tolist()
    assert Tally.of(survey, made.messages).counters.tolist() == expected.ravel().tolist()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([5, 9, 1, 7, 3]),
        pa.array([0.5, 0.9, 0.1, 0.7, 0.3]),
        pa.array([5, 9, 1, 7, 3], pa.timestamp("s")),
        pa.array([5, 9, 1, 7, 3], pa.date32()),
        pa.array(["2020-05-01", "2020-09-01", "2020-01-01", "2020-07-01", "2020-03-01"]),
    ],
)
def test_times_are_numbers_dates_or_iso_texts(tmp_path: Path, column: Any) -> None:
    table = pa.table(
        {
            "score": [0.1, 0.2, 0.3, 0.4, 0.9],
            "label": [0, 0, 1, 0, 1],
            "person": [7, 7, 8, 7, 7],
            "seen": column,
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    survey = survey_of(LATEST)
    counts, _ = count_patients_file(path, PEOPLE, survey, randomness=SYSTEM)
    assert counts.tolist() == survey.grid.count(Examples([0, 0, 1], [0.2, 0.4, 0.3])).tolist()


def test_rows_without_a_patient_or_a_time_are_counted_in_one_sentence(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [*VISITS, (0.5, 1, "", "2026-01-01")])
    with pytest.raises(ValueMissing, match='of 6 rows, 1 in column "person" are missing') as error:
        count_patients_file(path, PEOPLE, survey_of(LATEST), randomness=SYSTEM)
    assert "0.5" not in str(error.value)
    path = write_csv(tmp_path / "u.csv", [*VISITS, (0.5, 1, "eve", "")])
    with pytest.raises((ValueMissing, ColumnTypeInvalid, FileInvalid), match="seen"):
        count_patients_file(path, PEOPLE, survey_of(LATEST), randomness=SYSTEM)


def test_patients_numbered_with_gaps_by_pandas_are_missing_too(tmp_path: Path) -> None:
    table = pa.table({"score": [0.1, 0.2], "label": [0, 1], "person": [7.0, float("nan")]})
    pq.write_table(table, tmp_path / "t.parquet")
    columns = Columns(patient="person")
    with pytest.raises(ValueMissing, match="1 in column"):
        count_patients_file(tmp_path / "t.parquet", columns, survey_of(RANDOM), randomness=SYSTEM)


def test_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [(0.1, 0, "ann", "soon")])
    with pytest.raises(ColumnTypeInvalid, match="must hold times"):
        count_patients_file(path, PEOPLE, survey_of(LATEST), randomness=SYSTEM)


def test_a_table_that_does_not_say_whose_rows_they_are_is_not_answered(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", VISITS)
    ask = {"randomness": SYSTEM, "policy": OPEN_POLICY}
    with pytest.raises(SettingInvalid, match=r"\(--patient COL\)"):
        answer_file(survey_of(RANDOM), path, Columns(), **ask)  # type: ignore[arg-type]  # settings by name
    with pytest.raises(SettingInvalid, match=r"\(--time COL\)"):
        answer_file(survey_of(LATEST), path, Columns(patient="person"), **ask)  # type: ignore[arg-type]  # settings by name
    with pytest.raises(SettingInvalid, match="counts do not say whose rows they are"):
        answer_counts(survey_of(RANDOM), np.ones((2, 8), dtype=np.int64), **ask)  # type: ignore[arg-type]  # settings by name
    with pytest.raises(SettingInvalid, match=r"\(--patient COL\)"):
        fedassay.answer(survey_of(RANDOM), [0, 1], [0.2, 0.7], policy=OPEN_POLICY)
    with pytest.raises(ValueMissing, match="one patient per row; found 3 for 2 rows"):
        fedassay.answer(
            survey_of(RANDOM), [0, 1], [0.2, 0.7], patients=[1, 2, 3], policy=OPEN_POLICY
        )


def test_the_door_takes_patients_and_times_as_columns() -> None:
    survey = survey_of(LATEST)
    columns: list[Any] = [list(column) for column in zip(*VISITS, strict=True)]
    scores, labels, people, seen = columns
    made = fedassay.answer(
        survey, labels, scores, patients=people, times=seen,
        policy=OPEN_POLICY,
    )  # fmt: skip
    expected = survey.grid.count(Examples([0, 0, 1], [0.2, 0.4, 0.3]))
    assert Tally.of(survey, made.messages).counters.tolist() == expected.ravel().tolist()


# --- A federation ------------------------------------------------------------------------------


def cohort(rows: int = 60) -> ScoredClients:
    """Two sites; six people, all of whom are at both."""
    sites = np.arange(rows, dtype=np.int64) % 2
    patients = np.arange(rows, dtype=np.int64) // 2 % 6
    examples = Examples(np.arange(rows) % 3 == 0, (np.arange(rows) + 0.5) / rows)
    return ScoredClients(examples, sites, 2, ("north", "south"), patients, np.arange(float(rows)))


@pytest.mark.parametrize("unit", [RANDOM, LATEST])
@pytest.mark.parametrize("engine", [AtOnce, EachClient, InProcess])
def test_a_person_at_two_sites_is_two_patients_with_any_engine(engine: Any, unit: Unit) -> None:
    source = SYSTEM if engine is InProcess else SimulatedRandomness(1)
    tally = engine(cohort(), source).tally(survey_of(unit))
    assert tally.reports == (2,)
    assert tally.counters.sum() == 2 * 6 * 2 == rows_counted(survey_of(unit), cohort())
    if unit is LATEST:
        # The last two of each of twelve patients are the last 24 of 60 rows.
        last = cohort().examples.rows(np.arange(36, 60))
        assert tally.counters.tolist() == survey_of(unit).grid.count(last).ravel().tolist()


def test_under_local_privacy_one_row_of_each_patient_is_sent() -> None:
    survey = survey_of(RANDOM, Privacy.LOCAL)
    assert rows_counted(survey, cohort()) == 12
    assert tally_clients(survey, cohort(), randomness=SimulatedRandomness(1)).reports == (12,)


def test_a_simulation_reads_patients_from_a_file_and_says_what_was_left_out(
    tmp_path: Path,
) -> None:
    path = write_csv(tmp_path / "t.csv", VISITS * 40)
    found = read_clients(path, PEOPLE)
    assert found.patient_of_row is not None
    assert np.bincount(found.patient_of_row).tolist() == [160, 40]
    sites = ["north", "south"] * 100
    rows: list[Any] = VISITS * 40
    result = fedassay.simulate(
        [row[1] for row in rows], [row[0] for row in rows], clients=sites,
        patients=[row[2] for row in rows], unit="patient", max_examples=5, privacy="site",
        epsilon=5, steps=1, seed=1,
    )  # fmt: skip
    assert result.counted == 20
    assert "left out 90 %" in result.headline


# --- What it promises and costs ------------------------------------------------------------------


@pytest.mark.parametrize("privacy", [Privacy.DISTRIBUTED, Privacy.SITE])
def test_noise_is_sized_for_all_rows_of_a_patient(privacy: Privacy) -> None:
    survey = survey_of(Unit(UnitKind.PATIENT, 5), privacy)
    (mechanism,) = survey.mechanisms
    assert isinstance(mechanism, Polya)
    assert mechanism.sensitivity == 5
    assert survey_from_json(survey.to_json()) == survey
    sentence = survey.guarantee.sentence()
    assert "one patient inside one site with at most 5 examples, drawn at random" in sentence
    assert "A person at two sites is two patients" in sentence


def test_a_survey_says_which_rows_of_a_patient_count() -> None:
    survey = survey_of(LATEST, Privacy.SITE)
    assert survey.to_json()["unit"] == {"kind": "patient", "max_examples": 2, "keep": "latest"}
    assert survey_from_json(survey.to_json()) == survey
    assert "at most 2 examples, the latest" in survey.guarantee.sentence()
    assert survey.fingerprint != survey_of(RANDOM, Privacy.SITE).fingerprint
    content = survey.to_json()
    content["unit"] = {"kind": "example", "max_examples": 1, "keep": "latest"}
    with pytest.raises(FileInvalid, match="keep"):
        survey_from_json(content)


@pytest.mark.parametrize("kind", [UnitKind.EXAMPLE, UnitKind.CLIENT])
def test_the_latest_rows_are_a_patients(kind: UnitKind) -> None:
    with pytest.raises(SettingInvalid, match="goes with the patient unit"):
        Unit(kind, 1, Keep.LATEST)


def test_two_local_surveys_never_divide_a_patient() -> None:
    survey = survey_of(RANDOM, Privacy.LOCAL)
    with pytest.raises(SettingInvalid, match="a patient's rows would answer both"):
        Survey(
            privacy=survey.privacy,
            grid=survey.grid,
            hierarchy=survey.hierarchy,
            mechanisms=survey.mechanisms,
            unit=RANDOM,
            step=FirstOfTwo(Fraction(5), Fraction(1, 5)),
        )


def test_a_charge_for_a_patient_is_the_same_whichever_rows_count() -> None:
    charges = [
        Charge.of(survey_of(unit, Privacy.SITE), Part("q3"), Status.CHARGED)
        for unit in (RANDOM, LATEST)
    ]
    assert charges[0].unit == charges[1].unit == RANDOM
    assert charges[0].epsilon == 1


def test_rows_stay_as_they_are_where_no_patient_is_protected() -> None:
    rows, survey = Examples([0, 1, 1], [0.1, 0.2, 0.3]), survey_of(Unit())
    patients = np.zeros(3, np.int64)
    for given_patients in (None, patients):
        kept = limited_rows(survey, rows, patients=given_patients, times=None, randomness=SYSTEM)
        assert kept is rows


def test_a_survey_of_patients_never_falls_back_to_all_rows() -> None:
    rows = Examples([0, 1, 1], [0.1, 0.2, 0.3])
    with pytest.raises(SettingInvalid, match=r"--patient COL"):
        limited_rows(survey_of(RANDOM), rows, patients=None, times=None, randomness=SYSTEM)
