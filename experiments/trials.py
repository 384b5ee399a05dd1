"""One trial: rows drawn again, the survey or the two surveys of them, and every estimate."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from experiments.resampled import SortedRows
from fedassay.decoding import decode
from fedassay.draws import draw_tally
from fedassay.estimate import Estimate
from fedassay.examples import IntArray
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import metric_name, named_metric
from fedassay.planning.request import Preset, Steps, SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.planning.second_survey import second_survey
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo
from fedassay.tally import Tally
from fedassay.two_steps import decode_two


@dataclass(frozen=True, slots=True)
class Setting:
    """A privacy model with its epsilon."""

    privacy: Privacy
    epsilon: Fraction | None = None
    sites: int | None = None
    """How many clients hold the rows; None where every row is a client."""

    @property
    def name(self) -> str:
        """As the pages call it."""
        spent = "" if self.epsilon is None else f" {float(self.epsilon):g}"
        return f"{self.privacy.value}{spent}"

    def request(
        self,
        rows: int,
        thresholds: tuple[float, ...],
        *,
        steps: Steps = Steps.AUTO,
        preset: Preset = Preset.DEFAULT,
    ) -> SurveyRequest:
        """What is asked of the planner, for a table of so many rows."""
        return SurveyRequest(
            privacy=self.privacy,
            epsilon=self.epsilon,
            clients=self.sites or rows,
            examples=rows,
            thresholds=thresholds,
            steps=steps,
            preset=preset,
        )


SECURE = Setting(Privacy.SECURE)
DISTRIBUTED = tuple(Setting(Privacy.DISTRIBUTED, Fraction(e)) for e in ("1/10", "1"))
LOCAL = tuple(Setting(Privacy.LOCAL, Fraction(e)) for e in ("1", "2", "5"))
SETTINGS = (SECURE, *DISTRIBUTED, *LOCAL)


def small_settings(sites: int) -> tuple[Setting, ...]:
    """Those of a small federation: so many sites, distributed epsilon 0.1 to 3."""
    epsilons = map(Fraction, ("1/10", "3/10", "1", "3"))
    return tuple(Setting(Privacy.DISTRIBUTED, epsilon, sites) for epsilon in epsilons)


PAPER, ONE_STEP, TWO_STEPS, DEFAULT = "paper", "one step", "two steps", "default"


def designs(setting: Setting, rows: int, asked: tuple[float, ...]) -> dict[str, SurveyDesign]:
    """The paper's preset, and the default one in one step and in two."""
    return {
        PAPER: design_survey(setting.request(rows, asked, steps=Steps.ONE, preset=Preset.PAPER)),
        ONE_STEP: design_survey(setting.request(rows, asked, steps=Steps.ONE)),
        TWO_STEPS: design_survey(setting.request(rows, asked, steps=Steps.TWO)),
    }


def chosen(setting: Setting, rows: int, asked: tuple[float, ...]) -> str:
    """Which of them is chosen when nothing is said about steps."""
    survey = design_survey(setting.request(rows, asked)).survey
    return TWO_STEPS if isinstance(survey.step, FirstOfTwo) else ONE_STEP


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """Asks a table's rows, drawn again or not, as one design says."""

    design: SurveyDesign
    rows: SortedRows
    asked: tuple[float, ...]
    """The thresholds that were asked for before."""
    clients: int

    def histogram(self, counts: IntArray, generator: np.random.Generator) -> ScoreHistogram:
        """What is learned of rows, given as counts of label x distinct score."""
        survey, options = self.design.survey, self.design.decode_options
        mine, others = counts, counts
        if isinstance(survey.step, FirstOfTwo) and survey.is_local:  # a row answers one of the two
            mine = generator.binomial(counts, float(survey.step.client_fraction))
            others = counts - mine
        first = self._tally(survey, mine, generator)
        if not isinstance(survey.step, FirstOfTwo):
            return decode(survey, first, decode_options=options)
        second = second_survey(survey, first, thresholds=self.asked, clients=self.clients)
        tally = self._tally(second, others, generator)
        return decode_two(survey, first, second, tally, decode_options=options)

    def _tally(self, survey: Survey, counts: IntArray, generator: np.random.Generator) -> Tally:
        leaves = self.rows.on_grid(counts, survey.grid.edges)
        clients = int(leaves.sum()) if survey.is_local else self.clients
        return draw_tally(survey, leaves, clients=clients, generator=generator)

    def estimates(
        self,
        counts: IntArray,
        names: Iterable[str],
        read_at: dict[str, float],
        generator: np.random.Generator,
    ) -> dict[str, Estimate]:
        """Metrics by name, at thresholds that may not have been asked for before."""
        histogram = self.histogram(counts, generator)
        buckets = self.design.decode_options.buckets
        return {
            name: named_metric(histogram, _spelled(name, read_at), buckets=buckets)
            for name in names
        }


def _spelled(name: str, read_at: dict[str, float]) -> str:
    metric, _, label = name.partition("@")
    return metric_name(metric, read_at[label]) if label in read_at else name
