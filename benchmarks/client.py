"""One client with one example: what an answer costs it, and the server."""

from collections.abc import Callable

from benchmarks.page import Aim, Section
from benchmarks.timing import best_of, three_digits
from fedassay.client import ClientPolicy, answer, make_answer
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Exact
from fedassay.planner import (
    choose,
)
from fedassay.randomness import SystemRandomness
from fedassay.request import (
    Request,
)
from fedassay.survey import Survey
from fedassay.tally import Tally, TallyBuilder
from fedassay.wire import decode

_CALLS = 1000
_WANTED_MICROSECONDS = 100.0


def measure(*, quick: bool) -> Section:
    """Microseconds per step, for the default survey and a smaller one."""
    runs = 3 if quick else 15
    default = choose(Request()).survey
    cells = 4096
    smaller = Survey(
        grid=Grid.uniform(cells), hierarchy=Hierarchy.flat(cells), mechanisms=(Exact(),)
    )
    surveys = (default, smaller)
    columns = [_steps(survey, runs) for survey in surveys]
    rows = [(step, *(three_digits(column[step]) for column in columns)) for step in columns[0]]
    worst = max(column["client: the whole answer, as bytes"] for column in columns)
    return Section(
        title="One client's answer",
        about="Microseconds for one example, from raw score and label to the bytes of a report, "
        f"and for the server to add it; means over {_CALLS} calls. "
        f"A report has {len(_message(default))} bytes.",
        header=("step", *(f"2 × {survey.grid.cells:,} counters, µs" for survey in surveys)),
        rows=rows,
        aims=[
            Aim(
                f"an answer takes tens of microseconds; measured {three_digits(worst)} at most",
                worst < _WANTED_MICROSECONDS,
            )
        ],
    )


def _steps(survey: Survey, runs: int) -> dict[str, float]:
    randomness, policy = SystemRandomness(), ClientPolicy()
    examples = Examples.of([1], [0.62])
    counts = survey.grid.count(examples)
    answered = make_answer(survey, counts, randomness=randomness)
    messages = [_message(survey) for _ in range(_CALLS)]

    def whole_answer() -> bytes:
        checked = Examples.of([1], [0.62])
        return answer(survey, checked, randomness=randomness, policy=policy).to_bytes()

    def serve() -> None:
        builder = TallyBuilder(Tally.zero(survey), survey)
        for message in messages:
            builder.add(decode(message, survey))

    return {
        "client: check the example": _microseconds(runs, lambda: Examples.of([1], [0.62])),
        "client: find its cell": _microseconds(runs, lambda: survey.grid.count(examples)),
        "client: `make_answer`": _microseconds(
            runs, lambda: make_answer(survey, counts, randomness=randomness)
        ),
        "client: `Answer.to_bytes`": _microseconds(runs, answered.to_bytes),
        "client: the whole answer, as bytes": _microseconds(runs, whole_answer),
        "server: `decode` and `TallyBuilder.add`": best_of(runs, serve) / _CALLS * 1e6,
    }


def _message(survey: Survey) -> bytes:
    counts = survey.grid.count(Examples.of([1], [0.62]))
    return make_answer(survey, counts, randomness=SystemRandomness()).to_bytes()


def _microseconds(runs: int, task: Callable[[], object]) -> float:
    def repeated() -> None:
        for _ in range(_CALLS):
            task()

    return best_of(runs, repeated) / _CALLS * 1e6
