"""What the paper varied, and how often."""

from dataclasses import dataclass
from fractions import Fraction

from fedassay.mechanisms import Privacy

THRESHOLDS = tuple(i / 11 for i in range(1, 11))
HEIGHT, BUCKETS, BINS = 10, 100, 20
"""What is fixed while something else varies (`app:aucexpts`, `app:calibexpts`)."""


@dataclass(frozen=True, slots=True)
class Model:
    """A privacy model with its epsilon."""

    privacy: Privacy
    epsilon: Fraction | None = None

    @property
    def name(self) -> str:
        """As pages and plots call it.

        >>> DISTRIBUTED.name
        'distributed, ε = 1'
        """
        spent = "" if self.epsilon is None else f", ε = {float(self.epsilon):g}"
        return f"{self.privacy.value}{spent}"


SECURE = Model(Privacy.SECURE)
DISTRIBUTED = Model(Privacy.DISTRIBUTED, Fraction(1))
LOCAL = Model(Privacy.LOCAL, Fraction(5))
MODELS = (SECURE, DISTRIBUTED, LOCAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is varied, and how often it is repeated."""

    buckets: tuple[int, ...]
    heights: tuple[int, ...]
    bins: tuple[int, ...]
    clients: tuple[int, ...]
    """Populations; all rows come on top."""
    distributed_epsilons: tuple[Fraction, ...]
    local_epsilons: tuple[Fraction, ...]
    trees: dict[int, tuple[int, ...]]
    """Heights for each fan-out, with alike numbers of leaves."""
    repetitions: int
    rows: int | None
    """At most so many rows of a table; None takes all."""

    def populations(self, rows: int) -> tuple[int, ...]:
        """Numbers of clients to sample from so many rows, all of them last.

        >>> QUICK.populations(5_000)
        (1000, 5000)
        """
        return (*(count for count in self.clients if count < rows), rows)


def _fractions(*texts: str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, texts))


PAPER = Settings(
    buckets=(5, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200),
    heights=tuple(range(4, 15)),
    bins=(5, 10, 20, 30, 50, 100, 200),
    clients=(1_000, 3_000, 10_000, 30_000, 100_000, 300_000),
    distributed_epsilons=_fractions("1/8", "1/4", "1/2", "1", "2", "4"),
    local_epsilons=_fractions("1", "2", "3", "5", "8"),
    trees={2: (4, 6, 8, 10, 12), 3: (3, 4, 5, 6, 7, 8), 4: (2, 3, 4, 5, 6)},
    repetitions=10,
    rows=None,
)
"""The paper's settings (`app:expts`)."""
QUICK = Settings(
    buckets=(5, 20, 100, 200),
    heights=(4, 8, 10, 12, 14),
    bins=(5, 20, 100),
    clients=(1_000, 10_000),
    distributed_epsilons=_fractions("1/4", "1", "4"),
    local_epsilons=_fractions("1", "5"),
    trees={2: (6, 10), 3: (4, 6), 4: (3, 5)},
    repetitions=3,
    rows=40_000,
)
"""A first look: fewer points, repetitions and rows."""
