"""One trial: rows drawn again, the survey or the two surveys of them, and every estimate."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from experiments.resampled import SortedRows, on_grid
from fedassay.decoding import decode
from fedassay.draws import draw_tally
from fedassay.estimate import Estimate
from fedassay.examples import IntArray
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import named_metrics
from fedassay.planning.request import Preset, Steps, SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.planning.second_survey import second_survey
from fedassay.survey_steps import FirstOfTwo
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
    asked: tuple[float, ...]
    """The thresholds that were asked for before."""
    cells: IntArray
    """The cell of each distinct score."""
    clients: int

    @classmethod
    def of(
        cls, design: SurveyDesign, rows: SortedRows, asked: tuple[float, ...], clients: int
    ) -> "Reader":
        """Locate the scores on the survey's grid once."""
        return cls(design, asked, rows.cells(design.survey.grid.edges), clients)

    def histogram(self, counts: IntArray, generator: np.random.Generator) -> ScoreHistogram:
        """What is learned of rows, given as counts of label x distinct score."""
        survey, options = self.design.survey, self.design.decode_options
        leaves = on_grid(counts, self.cells, survey.grid.cells)
        if not isinstance(survey.step, FirstOfTwo):
            tally = draw_tally(survey, leaves, clients=self.clients, generator=generator)
            return decode(survey, tally, decode_options=options)
        mine, others, heard = leaves, leaves, self.clients
        if survey.is_local:  # a row answers one of the two
            mine = generator.binomial(leaves, float(survey.step.client_fraction))
            others, heard = leaves - mine, int(mine.sum())
        first = draw_tally(survey, mine, clients=heard, generator=generator)
        second = second_survey(survey, first, thresholds=self.asked, clients=self.clients)
        heard = self.clients - heard if survey.is_local else self.clients
        tally = draw_tally(second, others, clients=heard, generator=generator)
        return decode_two(survey, first, second, tally, decode_options=options)

    def estimates(
        self, counts: IntArray, read_at: dict[str, float], generator: np.random.Generator
    ) -> dict[str, Estimate]:
        """Every named metric, at thresholds that may not have been asked for before."""
        histogram = self.histogram(counts, generator)
        buckets = self.design.decode_options.buckets
        found = named_metrics(histogram, list(read_at.values()), buckets=buckets)
        labels = {repr(threshold): label for label, threshold in read_at.items()}
        return {labelled(name, labels): estimate for name, estimate in found.items()}


def labelled(name: str, labels: dict[str, str]) -> str:
    """A metric's name with what its threshold is called."""
    metric, at, threshold = name.partition("@")
    return f"{metric}@{labels[threshold]}" if at else metric
