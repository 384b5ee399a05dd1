"""The door for more than two classes: a matrix of probabilities instead of one score."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from fedassay.api import LARGEST_SEED
from fedassay.api_columns import Column, as_table, client_codes, column, column_names, name_of
from fedassay.api_inputs import Number, SurveySettings, survey_request
from fedassay.api_rows import Rows
from fedassay.checks import choice, require_whole, shown
from fedassay.classes.class_design import ClassDesign
from fedassay.classes.result import SimulatedClasses, run_classes
from fedassay.classes.rows import ClassRows, chosen_columns, names_of_columns
from fedassay.classes.table import read_class_cohort
from fedassay.classes.tallies import ClassCohort
from fedassay.errors import LabelInvalid, SettingInvalid
from fedassay.examples import MOST_NAMED, client_names
from fedassay.mechanisms import Privacy
from fedassay.planning.request import Preset, simulated_smallest
from fedassay.simulation.simulate import check_sites


def simulate_classes(
    y_true: Column,
    y_scores: npt.ArrayLike | Sequence[str] | str,
    *,
    classes: Sequence[object] | None = None,
    data: Any = None,
    clients: Column | None = None,
    patients: Column | None = None,
    times: Column | None = None,
    privacy: Privacy | str = Privacy.SECURE,
    epsilon: Number | None = None,
    design: ClassDesign | str | None = None,
    seed: int | None = None,
    **settings: Unpack[SurveySettings],
) -> SimulatedClasses:
    """Run a federation over rows of three classes or more, and compare with the exact figures.

    `y_scores` has a row for each example and a column for each class; with `data` it names the
    columns, as a list or as a pattern such as "p*". `classes` are the labels in the order of the
    columns: by default the suffixes of their names, or 0, 1, 2 and so on. `design` is how classes
    share epsilon ("every", "drawn" or "own"); left out, the smallest predicted error decides.

    >>> import fedassay
    >>> rng = np.random.default_rng(0)
    >>> matrix = rng.dirichlet([2, 1, 1], size=3000)
    >>> labels = [int(rng.choice(3, p=row)) for row in matrix]
    >>> result = fedassay.simulate_classes(labels, matrix, privacy="distributed", epsilon=5, seed=0)
    >>> abs(float(result["roc_auc/macro"]) - result.exact_values["roc_auc/macro"]) < 0.02
    True
    """
    if seed is not None:
        require_whole(seed, "a seed", 0, LARGEST_SEED, "Leave it out for other draws each time.")
    rows = Rows(y_true, "", as_table(data), patients, times)
    cohort = _cohort(rows, y_scores, classes, clients)
    held = cohort.held
    preset = choice(Preset, settings.get("preset", Preset.DEFAULT), "preset")
    request = survey_request(
        settings,
        privacy=privacy,
        epsilon=epsilon,
        clients=held.clients,
        smallest_cell=simulated_smallest(
            preset, settings.get("height"), settings.get("smallest_cell")
        ),
        dropouts=settings.get("dropouts", Fraction(0)),
        is_simulated=True,
    )
    check_sites(request.privacy, held)
    return run_classes(request, cohort, design=_chosen(design), seed=seed)


def _chosen(design: ClassDesign | str | None) -> ClassDesign | None:
    return None if design is None else choice(ClassDesign, design, "design")


def _cohort(
    rows: Rows, y_scores: Any, classes: Sequence[object] | None, clients: Column | None
) -> ClassCohort:
    """The rows with the client that holds each, from a file, a table or arrays."""
    data = rows.data
    if rows.path is not None:
        scores = y_scores if isinstance(y_scores, str) else ",".join(map(str, y_scores))
        owner = None if clients is None else name_of(clients, "clients")
        names = None if classes is None else tuple(map(str, classes))
        columns = replace(rows.columns, client=owner)
        return read_class_cohort(rows.path, scores, columns, classes=names)
    matrix, suffixes = _matrix(y_scores, data)
    labels = column(rows.y_true, data, "y_true")
    checked = ClassRows(labels, matrix, suffixes if classes is None else classes)
    numbers, when = rows.patient_numbers(), rows.time_numbers()
    if clients is None:
        return ClassCohort.of(checked, patient_of_row=numbers, time_of_row=when)
    codes, called = client_codes(clients, data)
    if len(codes) != len(checked):
        raise LabelInvalid(
            f"there must be one client per row; found {len(codes)} clients and {len(checked)} "
            "rows. Pass columns of the same table."
        )
    kept = client_names(called) if len(called) <= MOST_NAMED else ()
    return ClassCohort.of(checked, codes, names=kept, patient_of_row=numbers, time_of_row=when)


def _matrix(y_scores: Any, data: Any) -> tuple[Any, tuple[str, ...]]:
    """Probabilities, row x class, and what their columns say the classes are."""
    if data is not None:
        named = y_scores if isinstance(y_scores, str) else ",".join(map(str, y_scores))
        wanted, suffixes = chosen_columns(named, column_names(data))
        return np.stack([column(each, data, "y_scores") for each in wanted], axis=1), suffixes
    if isinstance(y_scores, str):
        raise SettingInvalid(
            f"y_scores names columns, but there is no table; found {shown(y_scores)}. Pass the "
            "table as data=, or a matrix of probabilities."
        )
    if hasattr(y_scores, "columns"):
        return np.asarray(y_scores), names_of_columns([str(name) for name in y_scores.columns])
    matrix = np.asarray(y_scores)
    if matrix.ndim != 2:
        raise SettingInvalid(
            "probabilities have one row for each example and one column for each class; found "
            f"{matrix.ndim} dimension{'' if matrix.ndim == 1 else 's'}. Pass such a matrix."
        )
    return matrix, tuple(map(str, range(matrix.shape[1])))
