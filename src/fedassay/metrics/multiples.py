"""A figure that is a fixed multiple of another one, interval and all."""

from dataclasses import KW_ONLY, dataclass

from fedassay.estimate import Estimate, Interval, NotEnoughData


@dataclass(frozen=True, slots=True, repr=False)
class Multiple(Estimate):
    """So many times a figure whose interval is drawn on that figure's own scale."""

    _: KW_ONLY
    factor: float = 1.0
    of: Estimate | None = None

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Both ends of the figure itself, times the factor."""
        if self.of is None:
            return Estimate.interval(self, confidence, population=population)
        low, high = self.of.interval(confidence, population=population)
        return Interval(self.factor * low, self.factor * high)


def multiple(of: Estimate, factor: float) -> Estimate:
    """A figure times a positive number; where there is none, why.

    >>> print(multiple(Estimate(0.02, sampling_sd=0.001), 1000.0))
    20.000 [18.040, 21.960]
    """
    if isinstance(of, NotEnoughData):
        return of
    return Multiple(
        value=factor * of.value,
        noise_sd=factor * of.noise_sd,
        sampling_sd=factor * of.sampling_sd,
        binning_bound=factor * of.binning_bound,
        binning_sd=factor * of.binning_sd,
        factor=factor,
        of=of,
    )
