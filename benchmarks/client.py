"""One client with one example: what an answer costs it, and the server."""

from benchmarks.page import Aim, Section
from benchmarks.timing import median_of, microseconds, three_digits
from fedassay.client import OPEN_POLICY, answer, make_answer
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Exact, Privacy
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.randomness import SystemRandomness
from fedassay.survey import Survey
from fedassay.tally import Tally, TallyBuilder
from fedassay.wire import decode

_REPORTS = 100
_WANTED_MICROSECONDS = 100.0


def measure(*, quick: bool) -> Section:
    """Microseconds per step, for the default survey and a smaller one."""
    runs = 3 if quick else 15
    default = design_survey(SurveyRequest()).survey
    cells = 4096
    smaller = Survey(
        privacy=Privacy.SECURE,
        grid=Grid.uniform(cells),
        hierarchy=Hierarchy.flat(cells),
        mechanisms=(Exact(),),
    )
    surveys = (default, smaller)
    columns = [_steps(survey, runs) for survey in surveys]
    rows = [(step, *(three_digits(column[step]) for column in columns)) for step in columns[0]]
    worst = max(column["client: the whole answer, as bytes"] for column in columns)
    return Section(
        title="One client's answer",
        about="Microseconds for one example, from raw score and label to the bytes of a report, "
        f"and for the server to add it; medians of means over a few calls. "
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
    randomness, policy = SystemRandomness(), OPEN_POLICY
    examples = Examples([1], [0.62])
    counts = survey.grid.count(examples)
    made = make_answer(survey, counts, randomness=randomness)
    messages = [_message(survey) for _ in range(_REPORTS)]

    def whole_answer() -> bytes:
        checked = Examples([1], [0.62])
        return answer(survey, checked, randomness=randomness, policy=policy).to_bytes()

    def serve() -> None:
        builder = TallyBuilder(Tally.zero(survey), survey)
        for message in messages:
            builder.add(decode(message, survey))

    return {
        "client: check the example": microseconds(runs, lambda: Examples([1], [0.62])),
        "client: find its cell": microseconds(runs, lambda: survey.grid.count(examples)),
        "client: `make_answer`": microseconds(
            runs, lambda: make_answer(survey, counts, randomness=randomness)
        ),
        "client: `to_bytes`": microseconds(runs, made.to_bytes),
        "client: the whole answer, as bytes": microseconds(runs, whole_answer),
        "server: `decode` and `TallyBuilder.add`": median_of(runs, serve) / _REPORTS * 1e6,
    }


def _message(survey: Survey) -> bytes:
    counts = survey.grid.count(Examples([1], [0.62]))
    return make_answer(survey, counts, randomness=SystemRandomness()).to_bytes()
