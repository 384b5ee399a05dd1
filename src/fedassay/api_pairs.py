"""Two models at the door: scores by the models' names."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fedassay.api_columns import Column, as_table
from fedassay.api_files import AnyAnswer, survey_of, tally_of
from fedassay.api_inputs import Number, as_thresholds, survey_request
from fedassay.api_rows import Rows
from fedassay.checks import shown
from fedassay.decoding import DecodeOptions
from fedassay.errors import LabelInvalid, SettingInvalid
from fedassay.examples import Examples
from fedassay.mechanisms import Privacy
from fedassay.pair_grid import Names, check_names
from fedassay.paired.assessment import PairedAssessment
from fedassay.paired.published import pair_of
from fedassay.planning.pair_model import References
from fedassay.planning.pair_search import design_pair
from fedassay.simulation.pairs import PairedClients, SimulatedPair, simulated_pair
from fedassay.simulation.simulate import check_sites, counted_rows


def as_names(paired: object) -> Names:
    """What two models are called: as given, or a and b.

    >>> as_names(True), as_names(["old", "new"])
    (('a', 'b'), ('old', 'new'))
    """
    if paired is True:
        return ("a", "b")
    if isinstance(paired, str) or not isinstance(paired, Iterable):
        raise SettingInvalid(
            f"paired is True, or two models' names; found {shown(paired)}. Write ('old', 'new')."
        )
    names = tuple(paired)
    check_names(names)
    return names[0], names[1]


def paired_rows(y_true: Column, scores: Mapping[str, Column], **rows: Any) -> PairedClients:
    """Rows with two scores each, from columns or from their names in a table."""
    clients = rows.pop("clients", None)
    check_names(tuple(scores))
    first, second = scores.values()
    if first is second or (isinstance(first, str) and first == second):
        raise SettingInvalid(
            "two models have scores of their own; found the same column twice. Pass two."
        )
    one = Rows(y_true, first, **rows).scored_clients(clients)
    other = Rows(y_true, second, **{**rows, "patients": None, "times": None}).examples()
    if not np.array_equal(one.examples.labels, other.labels):
        raise LabelInvalid(
            "both models score the same rows; found other labels (values withheld). Pass columns "
            "of the same table."
        )
    return PairedClients(one, other)


def as_references(reference: Any, names: Names) -> References | None:
    """Public rows scored by both models: (labels, {name: scores}), or nothing."""
    if reference is None:
        return None
    fits = isinstance(reference, tuple) and len(reference) == 2
    if not fits or not isinstance(reference[1], Mapping) or set(reference[1]) != set(names):
        raise SettingInvalid(
            f"a reference of two models is (labels, scores by the names {names[0]} and "
            f"{names[1]}); found {shown(type(reference))}. Leave it out, or pass public rows."
        )
    labels, scores = reference
    first, second = (Examples(labels, scores[name]).require_rows() for name in names)
    return first, second


def simulate_pair(
    y_true: Column,
    y_score: Mapping[str, Column],
    *,
    settings: Mapping[str, Any],
    privacy: Privacy | str,
    epsilon: Number | None,
    thresholds: float | Iterable[float],
    reference: Any,
    seed: int | None,
    **rows: Any,
) -> SimulatedPair:
    """Run a federation over rows that two models scored, as `fedassay.simulate` does."""
    points = as_thresholds(thresholds)
    clients = paired_rows(y_true, y_score, **{**rows, "data": as_table(rows.get("data"))})
    request = survey_request(
        {"steps": "auto", **settings},
        privacy=privacy,
        epsilon=epsilon,
        clients=clients.first.clients,
        dropouts=settings.get("dropouts", Fraction(0)),
        thresholds=points,
        is_simulated=True,
    )
    check_sites(request.privacy, clients.first)
    held = counted_rows(clients.first, request.unit, is_local=request.privacy.is_local)
    names = as_names(tuple(y_score))
    design = design_pair(
        replace(request, examples=held), names, references=as_references(reference, names)
    )
    return simulated_pair(design, clients, thresholds=points, seed=seed)


def tally_pair(
    survey: Any,
    answers: Iterable[AnyAnswer] | Mapping[str, AnyAnswer],
    *,
    thresholds: float | Iterable[float] = (0.5,),
) -> PairedAssessment:
    """Add up answers to a survey of two models, and say what differs between these.

    >>> import fedassay
    >>> survey = fedassay.new_survey(paired=True, examples=40_000, thresholds=0.5)
    >>> labels, one = [0, 1] * 2000, [i / 4000 for i in range(4000)]
    >>> two = [min(1.0, s + 0.2 * y) for y, s in zip(labels, one)]
    >>> policy = fedassay.ClientPolicy(exact_sums=True)
    >>> answers = [
    ...     fedassay.answer(survey, labels, {"a": one, "b": two}, policy=policy) for _ in range(3)
    ... ]
    >>> tally_pair(survey, answers).differences()["roc_auc"].told_apart()
    True
    """
    asked = survey_of(survey) if isinstance(survey, str | Path) else survey
    pair_of(asked)
    tally = tally_of(asked, answers)
    return PairedAssessment(asked, tally, DecodeOptions(), as_thresholds(thresholds))
