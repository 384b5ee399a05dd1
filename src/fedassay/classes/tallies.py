"""Who answers which part, and what arrives: a federation about classes in one process."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fedassay.classes.class_survey import ClassSurvey
from fedassay.classes.encodings import part_examples
from fedassay.classes.rows import ClassRows
from fedassay.examples import FloatArray, IntArray, ScoredClients
from fedassay.mechanisms import UnitKind
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import tally_clients, tally_each_client
from fedassay.tally import Tally


@dataclass(frozen=True, slots=True, eq=False)
class ClassCohort:
    """Rows of many classes, with the client that holds each."""

    rows: ClassRows
    held: ScoredClients
    """Who holds them; its examples are those of the top label."""

    @classmethod
    def of(
        cls,
        rows: ClassRows,
        client_of_row: IntArray | None = None,
        *,
        names: tuple[str, ...] = (),
        patient_of_row: IntArray | None = None,
        time_of_row: FloatArray | None = None,
    ) -> "ClassCohort":
        """Rows whose clients are numbered from 0; without numbers each row is a client.

        >>> rows = ClassRows([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]], [0, 1, 2])
        >>> ClassCohort.of(rows).held.clients
        2
        """
        clients = len(rows) if client_of_row is None else int(client_of_row.max()) + 1
        held = ScoredClients(
            rows.top_label(), client_of_row, clients, names, patient_of_row, time_of_row
        )
        return cls(rows, held)


def tally_parts(
    survey: ClassSurvey,
    cohort: ClassCohort,
    *,
    randomness: SimulatedRandomness,
    each_client: bool = False,
) -> tuple[Tally, ...]:
    """What arrives for every part; each unit answers all of them, or exactly one."""
    part_of_row = _drawn_parts(survey, cohort, randomness.generator)
    walk = tally_each_client if each_client else tally_clients
    return tuple(
        walk(
            part.survey,
            _answering(
                replace(
                    cohort.held, examples=part_examples(part, cohort.rows, randomness=randomness)
                ),
                None if part_of_row is None else part_of_row == number,
            ),
            randomness=randomness,
        )
        for number, part in enumerate(survey.parts)
    )


def _answering(held: ScoredClients, chosen_rows: npt.NDArray[np.bool_] | None) -> ScoredClients:
    """Those who answer a part, with their rows."""
    if chosen_rows is None:
        return held
    chosen = held.rows(np.flatnonzero(chosen_rows))
    if chosen.client_of_row is None:
        return replace(chosen, clients=len(chosen.examples))
    kept, codes = np.unique(chosen.client_of_row, return_inverse=True)
    return replace(
        chosen,
        client_of_row=codes.astype(np.int64),
        clients=len(kept),
        names=held.names_of(kept),
    )


def _drawn_parts(
    survey: ClassSurvey, cohort: ClassCohort, generator: np.random.Generator
) -> IntArray | None:
    """The part that each row's unit answers, drawn without looking at the data.

    Guarantee: a unit's rows are all in one part: those of a client, or, where every row has a
    report of its own and is protected by itself, each row alone.
    """
    if not survey.draws_one_part:
        return None
    shares = [float(part.client_fraction or 0) for part in survey.parts]
    first = survey.parts[0].survey
    alone = first.is_local and first.unit.kind is UnitKind.EXAMPLE
    owners = cohort.held.client_of_row
    if owners is None or alone:
        return generator.choice(len(shares), size=len(cohort.rows), p=shares)
    of_client = generator.choice(len(shares), size=cohort.held.clients, p=shares)
    drawn: IntArray = of_client[owners]
    return drawn
