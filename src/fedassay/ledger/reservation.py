"""Two surveys, one charge: what the first reserved pays for one second survey, and for no more."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from fedassay.errors import BudgetExceeded, SurveyRefused
from fedassay.ledger.budget import Tab, show
from fedassay.ledger.charge import Charge, Status
from fedassay.ledger.steps import FirstCharge, SecondCharge, TableSeal, shared_digest
from fedassay.survey import Survey
from fedassay.survey_steps import SecondOfTwo

_MAKE_ANEW = "Make the second with fedassay survey new --after first-assessment.json."


def priced(tab: Tab, charge: Charge, survey: Survey, *, table: TableSeal | None) -> Charge:
    """What a survey costs beside what was charged before; raises `SurveyRefused` if it may not.

    Guarantee: with one answer to each survey, a unit spends at most the first one's total:

    - the first charges the total of both before anything leaves; answered once more while
      nothing has used its reservation, it charges what it spends itself, and keeps that;
    - the second costs nothing where the first reserved it. It must then announce the same
      total, ask the same of the same data, and spend no more than is left; under local
      privacy no row may answer both;
    - without a reservation, because this client saw only the second or because another used
      it, the second costs what it spends.
    """
    match charge.step:
        case None:
            return charge
        case FirstCharge() as step:
            waiting = tab.reserved.get(charge.key)
            return charge if waiting is None else replace(charge, epsilon=step.spends)
        case SecondCharge() as step:
            first = _reserved_by(tab, charge)
            if first is None:
                return charge
            _check_second(first, survey, charge, table)
            return replace(charge, epsilon=Fraction(0), step=replace(step, reserved=True))


def _reserved_by(tab: Tab, charge: Charge) -> FirstCharge | None:
    """What waits for this second survey, if anything does."""
    waiting = tab.reserved.get(charge.reservation_key or "")
    return waiting.step if waiting is not None and isinstance(waiting.step, FirstCharge) else None


def _check_second(
    first: FirstCharge, survey: Survey, charge: Charge, table: TableSeal | None
) -> None:
    step = survey.step
    if not isinstance(step, SecondOfTwo) or survey.epsilon is None:
        return
    if step.total_epsilon != first.total:
        raise SurveyRefused(
            f"both surveys announce one total; the first said epsilon {show(first.total)}, this "
            f"second one {show(step.total_epsilon)}. {_MAKE_ANEW}"
        )
    if survey.epsilon > first.left:
        raise BudgetExceeded(
            f"{charge.part} has epsilon {show(first.left)} reserved for the second survey; this "
            f"one asks for {show(survey.epsilon)}. {_MAKE_ANEW}"
        )
    if shared_digest(survey) != first.shared:
        raise SurveyRefused(
            "the second survey has the first one's privacy, unit, model and colluders; this one "
            f"has others. {_MAKE_ANEW}"
        )
    if not np.isin(first.grid.edges, survey.grid.edges).all():
        raise SurveyRefused(
            "the second survey keeps every edge of the first, and may add some; this one lacks "
            f"some. {_MAKE_ANEW}"
        )
    if survey.is_local:
        _check_rows(first, step, charge, table)


def _check_rows(
    first: FirstCharge, step: SecondOfTwo, charge: Charge, table: TableSeal | None
) -> None:
    """Raise unless each row answers at most one of two locally private surveys."""
    if first.client_fraction + step.client_fraction > 1:
        raise SurveyRefused(
            "under local privacy nobody answers both surveys, so that their shares of the clients "
            f"add up to at most 1; these are {show(first.client_fraction)} and "
            f"{show(step.client_fraction)}. {_MAKE_ANEW}"
        )
    if charge.status is not Status.ISSUED and first.table != table:
        raise SurveyRefused(
            f"under local privacy each row of {charge.part} answers one of two surveys, by its "
            "number; the table has changed since it answered the first, so that a row might "
            "answer both. Bring back the table as it was, or start two new surveys."
        )
