"""Whether a charge fits: budgets in force, balances, refusals."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction

from fedassay.errors import BudgetExceeded, BudgetMissing, SurveyRepeated
from fedassay.ledger.charge import Charge, Part
from fedassay.ledger.composition import composed
from fedassay.ledger.entry import Budget, Entry
from fedassay.ledger.spend import Load, common_neighbours, cost, covers, loads
from fedassay.ledger.steps import FirstCharge, SecondCharge
from fedassay.ledger.window import EVER, Window
from fedassay.mechanisms import Neighbours

NO_LIMIT = Budget(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """How much of a budget is spent at the point of the data that has spent most."""

    data: str
    budget: Budget
    spent: Fraction
    neighbours: Neighbours
    """The spend is for one unit under these neighbours."""
    charges: int
    delta: Fraction
    """The chance that the spend says nothing about, at the point where it is largest."""
    unbounded: int
    """How many of the charges no epsilon of this unit covers: exact sums, mostly."""

    @property
    def left(self) -> Fraction | None:
        """What may still be spent at that point; None without a limit."""
        if self.budget.epsilon is None:
            return None
        return max(Fraction(0), self.budget.epsilon - self.spent)


@dataclass(frozen=True, slots=True)
class Tab:
    """What a ledger knows of one data id: all that a decision needs."""

    data: str
    charges: Mapping[Charge, int]
    """How often each kind of charge was made (`Charge.kind`)."""
    budgets: tuple[Budget, ...]
    """Those in force; none where nobody has said anything, not even that there is no limit."""
    answered: frozenset[str]
    """Keys of the surveys that were charged, or of those that were asked about."""
    limited: frozenset[str] = frozenset()
    """All data ids that have a limit of their own, this one or others."""
    reserved: Mapping[str, Charge] = field(default_factory=dict)
    """By its key, each charge for a first survey whose second has not been answered."""

    def balances(self, part: Part | None = None) -> list[Balance]:
        """What is spent and left per budget, anywhere or at one part's points."""
        return [
            balance(self.charges, budget, self.data, part)
            for budget in self.budgets or (NO_LIMIT,)
            if part is None or part.window.overlaps(budget.window)
        ]


def tab_of(entries: Iterable[Entry], data: str) -> Tab:
    """The tab of a data id, from all entries of a ledger."""
    contents = [entry.content for entry in entries]
    charges = [c for c in contents if isinstance(c, Charge) and c.part.data == data]
    budgets = [c for c in contents if isinstance(c, Budget)]
    return Tab(
        data,
        Counter(charge.kind for charge in charges),
        in_force([b for b in budgets if b.data == data], [b for b in budgets if b.data is None]),
        frozenset(key for charge in charges for key in charge.answers),
        frozenset(limited_by(budgets)),
        reserved_by(charges),
    )


def reserved_by(
    charges: Iterable[Charge], before: Mapping[str, Charge] | None = None
) -> dict[str, Charge]:
    """What first surveys reserved and no second one has used up, after these charges in order."""
    reserved = dict(before or {})
    for charge in charges:
        key, step = charge.reservation_key, charge.step
        if key is None or step is None:
            continue
        if isinstance(step, FirstCharge) and step.left > 0:
            reserved[key] = charge
        elif isinstance(step, FirstCharge) or step.reserved:
            reserved.pop(key, None)
    return reserved


def limited_by(budgets: Iterable[Budget]) -> set[str]:
    """The data ids that have a limit of their own after these budgets, in order."""
    latest = {(budget.data, budget.window): budget for budget in budgets}
    return {
        budget.data
        for budget in latest.values()
        if budget.data is not None and budget.epsilon is not None
    }


def in_force(own: Iterable[Budget], general: Iterable[Budget]) -> tuple[Budget, ...]:
    """Of budgets for a data id, and those for any, each in order: which hold.

    Its own for one window does not lift those for any data: elsewhere they are all there is.
    """
    latest = {budget.window: budget for budget in own}
    shared = {budget.window: budget for budget in general}
    return tuple((latest if EVER in latest else {**shared, **latest}).values())


def balance(
    charges: Iterable[Charge], budget: Budget, data: str, part: Part | None = None
) -> Balance:
    """What is spent of a budget, anywhere or at the points of one part of the data."""
    counted = Counter(charges)
    window, group = _scope(budget, part)
    parts = list(loads(covers(counted, budget), window, group))
    return Balance(
        data=data,
        budget=budget,
        spent=_spent(parts, budget),
        delta=max((load.delta for load in parts), default=Fraction(0)),
        neighbours=common_neighbours(counted),
        charges=counted.total(),
        unbounded=sum(
            times
            for charge, times in counted.items()
            if cost(charge, budget.unit, Neighbours.REPLACE) is None
        ),
    )


def decide(tab: Tab, charge: Charge, *, again: bool) -> None:
    """Raise unless the charge may be made: no repeat, and within every budget it touches."""
    part, step = charge.part, charge.step
    if not again and repeats(tab, charge):
        taken = "" if charge.key in tab.answered else ", or another second one in its place,"
        raise SurveyRepeated(
            f"survey {charge.survey[:12]}{taken} was charged before on {part}; answering it again "
            "spends again. Use the earlier answer, or allow it explicitly: again=True (--again)."
        )
    if isinstance(step, SecondCharge) and step.reserved:
        # Paid for with the first; a budget that was lowered since takes nothing back.
        return
    _check_budgeted(tab, part)
    if charge.epsilon is None:
        _check_exact_sums(tab, part)
    for budget in tab.budgets:
        if budget.epsilon is not None and part.window.overlaps(budget.window):
            _check_bounded(charge, budget)
            _check_delta(tab.charges, charge, budget)
            _check_fits(tab.charges, charge, budget)


def repeats(tab: Tab, charge: Charge) -> bool:
    """Whether a survey was charged before, or another one that takes its place among two."""
    is_second_turn = (
        isinstance(charge.step, SecondCharge)
        and not charge.step.reserved
        and charge.turn_key in tab.answered
    )
    return charge.key in tab.answered or is_second_turn


def _check_budgeted(tab: Tab, part: Part) -> None:
    """Raise where a ledger with limits says nothing of this data: a misspelt id has no limit."""
    has_limits = bool(tab.limited) or any(b.epsilon is not None for b in tab.budgets)
    if not has_limits or part.window.is_within([budget.window for budget in tab.budgets]):
        return
    close = get_close_matches(part.data, sorted(tab.limited - {part.data}), n=1, cutoff=0.6)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    lacks = "a budget for some of this time only" if tab.budgets else "no budget"
    raise BudgetMissing(
        f"{part} has {lacks}, and this ledger has budgets for others.{meant} Set one with "
        "Ledger.set_budget or fedassay ledger budget FILE --data-id ID --epsilon E, or say that "
        "there is no limit (epsilon=None, --unlimited)."
    )


def _check_exact_sums(tab: Tab, part: Part) -> None:
    """Raise where one more exact sum, of any survey, is more than the data's budgets allow.

    Two exact sums over almost the same rows differ by those that changed, whatever grid each
    survey has: so they are counted, not compared.
    """
    budgets = [budget for budget in tab.budgets if part.window.overlaps(budget.window)]
    # Where there is no limit to epsilon there still is one to differencing.
    allowed = min(
        (b.exact_sums if b.epsilon is not None else max(b.exact_sums, 1) for b in budgets),
        default=1,
    )
    made = sum(
        times
        for old, times in tab.charges.items()
        if old.epsilon is None and old.part.overlaps(part)
    )
    if made < allowed:
        return
    if not allowed:
        raise BudgetExceeded(
            f"{part} has a budget of epsilon {show(budgets[0].epsilon)}; this survey asks for "
            "exact sums, which no epsilon covers. Ask for a differentially private survey, or "
            "allow one in the budget: exact_sums=1 (--exact-sums 1)."
        )
    raise BudgetExceeded(
        f"{part} may answer {allowed} exact sum(s), and has answered {made}: the difference of "
        "two tells whose rows changed between them. Use the earlier answer, ask for a "
        f"differentially private survey, or allow one more: "
        f"exact_sums={made + 1} (--exact-sums {made + 1})."
    )


def _check_bounded(charge: Charge, budget: Budget) -> None:
    if charge.epsilon is not None and cost(charge, budget.unit, Neighbours.REPLACE) is None:
        raise BudgetExceeded(
            f"{charge.part} has a budget per client; this survey protects one example, and a "
            "client may hold any number. Ask for a survey with unit client."
        )


def _check_delta(before: Mapping[Charge, int], charge: Charge, budget: Budget) -> None:
    """Raise where epsilon would fail more often than the budget allows."""
    if charge.delta is None:
        return
    allowed, part = budget.delta or Fraction(0), charge.part
    after = balance(_with(before, charge), budget, part.data, part)
    if after.delta > allowed:
        has = f"allows a delta of {float(allowed):g}" if allowed else "allows no delta"
        raise BudgetExceeded(
            f"{part} has a budget that {has}; with this survey, whose epsilon may fail with "
            f"probability {float(charge.delta):g}, it comes to {float(after.delta):g}. Raise the "
            "budget's delta (fedassay ledger budget --delta), or choose local privacy."
        )


def _check_fits(before: Mapping[Charge, int], charge: Charge, budget: Budget) -> None:
    part, asked = charge.part, charge.epsilon
    after = balance(_with(before, charge), budget, part.data, part)
    if asked is None or budget.epsilon is None or after.spent <= budget.epsilon:
        return
    nothing = replace(charge, epsilon=Fraction(0), delta=None)
    spent = balance(_with(before, nothing), budget, part.data, part).spent
    counted = cost(charge, budget.unit, after.neighbours) or asked
    room = max(Fraction(0), budget.epsilon - spent) * asked / counted
    remedy = f"Ask for at most {show(room)}" if room else "Nothing is left: wait for new data"
    why = ""
    earlier = balance(before, budget, part.data, part)
    if earlier.spent != spent or counted != asked:
        why = (
            f" Some of these surveys hide whether one {budget.unit.value} is there, others which "
            "one it is; replacing is removing and adding, so beside the others the former count "
            "twice."
        )
    recount = "" if earlier.spent == spent else f", which was {show(earlier.spent)} before it"
    if not room and earlier.left:
        remedy = (
            f"Nothing is left for this survey, and {show(earlier.left)} for one like the earlier "
            "ones, of distributed privacy: ask for that, wait for new data"
        )
    as_counted = "" if counted == asked else f", which counts {show(counted)} here"
    raise BudgetExceeded(
        f"{part} has a budget of epsilon {show(budget.epsilon)} per {budget.unit.value}; spent "
        f"{show(spent)} ({after.neighbours.value} neighbours){recount}, this survey asks for "
        f"{show(asked)}{as_counted}.{why} {remedy}, or raise the budget."
    )


def _with(before: Mapping[Charge, int], charge: Charge) -> Counter[Charge]:
    after = Counter(before)
    after[charge.kind] += 1
    return after


def _scope(budget: Budget, part: Part | None) -> tuple[Window, str | None]:
    """The points that a budget and a part have in common, as far as splits are declared."""
    if part is None:
        return budget.window, None
    group = part.group if budget.split_groups else None
    if not budget.split_windows:
        return EVER, group
    start = max(part.window.first, budget.window.first)
    end = min(part.window.last, budget.window.last)
    return replace(EVER, start=start, end=end), group


def _spent(parts: Sequence[Load], budget: Budget) -> Fraction:
    """What the worst-off point has spent.

    Guarantee: with the budget's delta less the charges' own: but for the chance that any of
    these fails, which is at most their sum, each is a promise without a delta.
    """
    total = max((load.total for load in parts), default=Fraction(0))
    if budget.delta is None or (budget.epsilon is not None and total <= budget.epsilon):
        return total
    return max(
        composed(load.costs, budget.delta - load.delta) if load.delta < budget.delta else load.total
        for load in set(parts)
    )


def show(value: Fraction | None) -> str:
    """An exact number for people: as a fraction where that is short, else to six digits."""
    if value is None:
        return "none"
    text = str(value)
    return text if len(text) <= 9 else f"{float(value):.6g}"
