"""Two surveys of the same scores read as one: nothing that the first learned is thrown away."""

import numpy as np

from fedassay.checks import require_type
from fedassay.decoding import DecodeOptions, debiased, decode, level_variance, require_enough
from fedassay.errors import SettingInvalid, SurveyMismatch
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.noise import DenseNoise
from fedassay.reconcile import Observed, fit_leaves
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from fedassay.tally import Tally

_FEWEST_IN_BOTH = 0.5


def check_pair(first: Survey, second: Survey) -> None:
    """Raise unless the second survey was made from the first, and both keep their promise.

    >>> import fedassay
    >>> one = fedassay.new_survey(minimum_reports=2)
    >>> check_pair(one, one)
    Traceback (most recent call last):
    ...
    fedassay.errors.SurveyMismatch: the second survey names its first; this one names none...
    """
    require_type(first, Survey, "a first survey", "fedassay.load reads survey files.")
    require_type(second, Survey, "a second survey", "fedassay.load reads survey files.")
    if not isinstance(second.step, SecondOfTwo) or not isinstance(first.step, FirstOfTwo):
        raise SurveyMismatch(
            "the second survey names its first; this one names none. Make it with "
            "fedassay survey new --after first-assessment.json."
        )
    if second.step.first != first.fingerprint:
        raise SurveyMismatch(
            f"the second survey follows {second.step.first.hex()[:12]}; this first one is "
            f"{first.fingerprint.hex()[:12]}. Pass the assessment that it was made from."
        )
    same = ("privacy", "grid", "unit", "allow_empty", "model_digest", "colluders")
    other = [name for name in same if getattr(first, name) != getattr(second, name)]
    if other:
        raise SurveyMismatch(
            f"both surveys have the same {', '.join(same)}; {', '.join(other)} differ. "
            "Make the second with fedassay survey new --after first-assessment.json."
        )
    spent = [survey.epsilon for survey in (first, second) if survey.epsilon is not None]
    total = max(spent) if first.is_local else sum(spent)
    shares = first.step.client_fraction + second.step.client_fraction
    if (
        first.step.total_epsilon != second.step.total_epsilon
        or total > first.step.total_epsilon
        or (first.is_local and shares > 1)
    ):
        raise SurveyMismatch(
            f"both surveys together spend what the first announced, epsilon "
            f"{float(first.step.total_epsilon):g}; these spend {float(total):g}. "
            "Make the second with fedassay survey new --after first-assessment.json."
        )


def decode_two(
    first: Survey,
    first_tally: Tally,
    second: Survey,
    second_tally: Tally,
    *,
    decode_options: DecodeOptions,
) -> ScoreHistogram:
    """The least-squares leaves from all counters of both surveys, and their noise.

    Every counter of either survey is a sum of the same leaves, known up to its own noise;
    weighted by it they are joined as the levels of one survey are. The second survey's cells
    depend on the first one's noise, but for any cells the fit is unbiased.

    Where clients answer both and some answered only one, the first's counts are
    scaled, and their variance grows by what so many clients may hold.

    Guarantee: post-processing only; whatever the surveys promise still holds.
    """
    check_pair(first, second)
    for survey, tally in ((first, first_tally), (second, second_tally)):
        tally.require(survey)
        require_enough(survey, tally)
    heard = [first_tally.clients(first), second_tally.clients(second)]
    if not first.is_local and min(heard) < _FEWEST_IN_BOTH * max(heard):
        raise SettingInvalid(
            f"two surveys are read together when the same clients answer both; found "
            f"{heard[0]:,} reports of the first and {heard[1]:,} of the second. "
            "Gather more of the one that has few, or read the first alone."
        )
    clients = float(sum(heard) if first.is_local else heard[1])
    total = clients if first.total_is_known else None
    pair = ((first, first_tally), (second, second_tally))
    values = [
        [
            debiased(survey, tally, level, clients=clients)
            for level in range(survey.hierarchy.levels)
        ]
        for survey, tally in pair
    ]
    counts = decode(first, first_tally, decode_options=DecodeOptions()).counts
    counts = counts * (clients / heard[0])
    passes = 2 if first.samples_clients else 1
    for _ in range(passes):
        observed = [
            Observed(
                survey.hierarchy.rows(level),
                values[step][level],
                _variances(survey, tally, level, counts, clients=clients),
            )
            for step, (survey, tally) in enumerate(pair)
            for level in range(survey.hierarchy.levels)
        ]
        counts, covariance = fit_leaves(observed, total=total)
    epsilon = float(second.epsilon) if second.is_local and second.epsilon else None
    noise = DenseNoise(covariance, counts if first.samples_clients else None, epsilon)
    return ScoreHistogram(first.grid.edges, counts, noise, decode_options.smooth)


def _variances(
    survey: Survey, tally: Tally, level: int, leaves: FloatArray, *, clients: float
) -> FloatArray:
    """Of a level's debiased counts, scaled to so many clients."""
    heard = tally.reports[level]
    held = survey.hierarchy.at_level(leaves, level)
    variance = level_variance(
        survey.mechanisms[level].law(),
        clients=clients,
        reports=heard,
        counts=np.abs(held),
        sampled=survey.samples_clients,
    )
    if not survey.samples_clients and heard != clients:
        # So many clients are in one sum only; each may hold as much again as the mean.
        apart, mean = abs(heard - clients), np.abs(held) / clients
        variance = variance + apart * (mean**2 + mean)
    return np.broadcast_to(variance, held.shape)
