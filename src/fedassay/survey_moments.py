"""Secure moments in a survey: which metrics' effects sites add up, and for how many sites.

Under exact secure sums each site adds five small integers for each metric to the vector that is
summed. What they are, and what follows from their sums, is in `fedassay.sites.moments`; here is
what both sides must agree on.

Guarantee: a survey asks for moments only where sums are exact and at least `FEWEST_HONEST` honest
sites report, because the effects of fewer could be solved for. A site reads its survey before it
adds anything, so that no survey without that crowd gets an answer.
"""

from dataclasses import dataclass
from typing import Any

from fedassay.checks import require_type, require_whole
from fedassay.errors import SettingInvalid
from fedassay.files import Fields
from fedassay.mechanisms import Privacy

FEWEST_HONEST = 5
"""Honest sites, below which moments are refused."""
WORDS = 5
"""For each metric: a one, the effect, its square, its variance, and the variance's square."""
MOMENT_METRICS = ("roc_auc", "oe_ratio", "calibration_slope", "calibration_in_the_large")
MOST_SITES = 2**14
_FEW = 63


@dataclass(frozen=True, slots=True)
class SiteMoments:
    """Which metrics' moments are added up, and how many sites may add theirs at most.

    >>> SiteMoments(("roc_auc",), 63).words
    5
    """

    metrics: tuple[str, ...] = MOMENT_METRICS
    most_sites: int = _FEW
    """Fewer give finer steps; no sum of as many words reaches 2^31."""

    def __post_init__(self) -> None:
        require_type(self.metrics, tuple, "the metrics of moments", 'Write them as ("roc_auc",).')
        known = tuple(name for name in MOMENT_METRICS if name in self.metrics)
        if not known or known != self.metrics:
            raise SettingInvalid(
                f"moments are of {', '.join(MOMENT_METRICS)}, each once and in this order; found "
                f"{', '.join(map(repr, self.metrics))[:80] or 'none'}."
            )
        require_whole(self.most_sites, "the most sites of moments", FEWEST_HONEST, MOST_SITES)

    @classmethod
    def for_sites(cls, sites: int | None) -> "SiteMoments":
        """All metrics, with room for twice the sites that are expected, and for 63 at least.

        >>> SiteMoments.for_sites(None).most_sites, SiteMoments.for_sites(100).most_sites
        (63, 255)
        """
        wanted = max(2 * (sites or 0), _FEW)
        return cls(MOMENT_METRICS, min(2 ** wanted.bit_length() - 1, MOST_SITES))

    @property
    def words(self) -> int:
        """How many integers a site adds."""
        return WORDS * len(self.metrics)

    def check(self, privacy: Privacy, *, honest: int, on_one_level: bool) -> None:
        """Raise `SettingInvalid` where moments would tell more than sums of many sites.

        >>> SiteMoments().check(Privacy.SECURE, honest=5, on_one_level=False)
        """
        if privacy is not Privacy.SECURE or on_one_level:
            raise SettingInvalid(
                "moments of sites are sums without noise: they go with secure privacy, where sums "
                f"are exact and on every level; found {privacy.value} privacy"
                f"{' with one level each' if on_one_level else ''}. Leave them out; with noise of "
                "their own (--privacy site) sites may be seen."
            )
        if honest < FEWEST_HONEST:
            raise SettingInvalid(
                f"moments of sites need at least {FEWEST_HONEST} honest sites, or single ones "
                f"could be solved for; found minimum_reports - colluders = {honest}. Raise "
                "minimum_reports, or leave moments out."
            )

    def to_json(self) -> dict[str, Any]:
        """What a survey's file says of it."""
        return {"metrics": list(self.metrics), "most_sites": self.most_sites}

    @classmethod
    def from_json(cls, fields: Fields) -> "SiteMoments":
        """Read what a stranger may have written."""
        fields.only("metrics", "most_sites")
        listed = fields.get("metrics")
        names = tuple(listed) if isinstance(listed, list) else ()
        return cls(names, fields.integer("most_sites", FEWEST_HONEST, MOST_SITES))
