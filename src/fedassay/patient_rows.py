"""Which rows of a patient count, where a patient is what is protected."""

import numpy as np

from fedassay.errors import SettingInvalid, ValueMissing
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.mechanisms import Keep, UnitKind
from fedassay.randomness import Randomness
from fedassay.survey import Survey


def limits_patients(survey: Survey) -> bool:
    """Whether a site leaves rows out before it counts, patient by patient."""
    return survey.unit.kind is UnitKind.PATIENT


def most_of_a_patient(survey: Survey) -> int:
    """How many rows of one patient count: one where each row is a report of its own."""
    return 1 if survey.is_local else survey.unit.max_examples


def kept_rows(
    patients: IntArray, most: int, *, times: FloatArray | None, randomness: Randomness
) -> IntArray:
    """The numbers of the rows that count, rising: at most so many of each patient.

    With `times`, any numbers that rise with time, they are a patient's latest, else drawn
    uniformly; so are rows of the same time.

    Guarantee: which rows of a patient count depends on that patient's rows and on fresh draws
    alone, so that one patient more or less adds or takes away at most `most` rows.

    >>> from fedassay.randomness import SystemRandomness
    >>> patients, times = np.array([7, 7, 8, 7]), np.array([2001.0, 2003.0, 1999.0, 2002.0])
    >>> kept_rows(patients, 2, times=times, randomness=SystemRandomness()).tolist()
    [1, 2, 3]
    """
    draws = np.frombuffer(randomness.bytes(8 * len(patients)), dtype=np.uint64)
    age = np.zeros(len(patients)) if times is None else -times
    order = np.lexsort((draws, age, patients))
    owner = patients[order]
    is_first = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(owner)), 0))
    return np.sort(order[np.arange(len(owner)) - first < most])


def limited_rows(
    survey: Survey,
    examples: Examples,
    *,
    patients: IntArray | None,
    times: FloatArray | None,
    randomness: Randomness,
) -> Examples:
    """The rows of a site that count; all of them unless patients are protected.

    Guarantee: see `kept_rows`. A patient at two sites is one at each.
    """
    check_patients(survey, has_patients=patients is not None, has_times=times is not None)
    if patients is None or not limits_patients(survey):
        return examples
    for what, values in (("patient", patients), ("time", times)):
        if values is not None and len(values) != len(examples):
            raise ValueMissing(
                f"there must be one {what} per row; found {len(values)} for {len(examples)} rows. "
                "Pass columns of the same table."
            )
    chosen = times if survey.unit.keep is Keep.LATEST else None
    most = most_of_a_patient(survey)
    return examples.rows(kept_rows(patients, most, times=chosen, randomness=randomness))


def check_patients(survey: Survey, *, has_patients: bool, has_times: bool) -> None:
    """Raise unless a table says what a survey that protects patients needs to know."""
    if not limits_patients(survey):
        return
    if not has_patients:
        raise SettingInvalid(
            f"this survey protects {survey.unit}; found no column that says whose each row is. "
            "Name it: patients= (--patient COL)."
        )
    if survey.unit.keep is Keep.LATEST and not has_times:
        raise SettingInvalid(
            "this survey counts the latest rows of a patient; found no column that says when each "
            "row was. Name it: times= (--time COL)."
        )
