"""The words that a site adds to a survey's sums, from its own counts; and the sums read back."""

from collections.abc import Sequence

import numpy as np

from fedassay.examples import IntArray
from fedassay.files import Fields
from fedassay.histogram import ScoreHistogram
from fedassay.sites.effects import histogram_effects
from fedassay.sites.moments import site_moments
from fedassay.survey import Survey
from fedassay.survey_cells import all_parts
from fedassay.survey_moments import FEWEST_HONEST, WORDS


def moment_words(survey: Survey, leaf_counts: IntArray) -> IntArray:
    """What a site with these counts adds: five words for each metric, zeros where it has no effect.

    Its effects are those of the cells that it counts for the survey, so that they agree with what
    the sums say; a site with fewer than ten rows of a class has none.

    >>> import fedassay
    >>> survey = fedassay.new_survey(minimum_reports=5, site_moments=True)
    >>> counts = survey.grid.count(fedassay.Examples([0, 1] * 9, [0.2, 0.7] * 9))
    >>> moment_words(survey, counts).any()
    np.False_
    """
    if survey.moments is None:
        return np.zeros(0, dtype=np.int64)
    histogram = ScoreHistogram(survey.grid.edges, all_parts(survey, leaf_counts).astype(np.float64))
    words = []
    for metric in survey.moments.metrics:
        effects = histogram_effects(metric, {"own": histogram}).effects
        words.append(site_moments(effects[0] if effects else None, survey.moments.most_sites))
    return np.concatenate(words)


def moments_by_metric(survey: Survey, sums: IntArray | Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Sums of words by metric, as they may be published.

    Where fewer than five honest sites turn out to have an effect, the effects could be solved for:
    how many there are is said, and the rest is left out.

    >>> import fedassay
    >>> survey = fedassay.new_survey(minimum_reports=5, site_moments=True)
    >>> moments_by_metric(survey, [4, 9, 9, 9, 9] * 4)["roc_auc"]
    (4, 0, 0, 0, 0)
    """
    if survey.moments is None:
        return {}
    table = np.asarray(sums, dtype=np.int64).reshape(-1, WORDS).tolist()
    return {
        metric: tuple(words)
        if words[0] - survey.colluders >= FEWEST_HONEST
        else (words[0], *[0] * (WORDS - 1))
        for metric, words in zip(survey.moments.metrics, table, strict=True)
    }


def moments_from_json(fields: Fields, survey: Survey) -> IntArray:
    """Sums of moments from a file that a stranger may have written, in the survey's order.

    >>> import fedassay
    >>> survey = fedassay.new_survey(minimum_reports=5, site_moments=True)
    >>> words = {metric: [5, 0, 0, 1, 1] for metric in survey.moments.metrics}
    >>> moments_from_json(Fields({"moments": words}, "file"), survey)[:5].tolist()
    [5, 0, 0, 1, 1]
    """
    words: list[int] = []
    if survey.moments is not None:
        inside = fields.inside("moments")
        inside.only(*survey.moments.metrics)
        for metric in survey.moments.metrics:
            words += inside.integers(metric, WORDS)
    return np.array(words, dtype=np.int64)
