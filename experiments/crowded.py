"""Tables whose scores crowd: real ones made rare by a rule, and shapes that real ones lack."""

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from experiments.data import SHARED, Scored, load, rows, thinned
from experiments.odd_tables import ODD_HOSPITALS, labelled, odd_examples, odd_names
from fedassay.examples import Examples

SYNTHETIC_ROWS = 200_000
RARE = (0.01, 0.005)
QUANTILES = (0.5, 0.8, 0.95)
"""Of the scores: the thresholds that matter on a table, wherever its scores lie."""

REAL = ("acs_income", "nycflights13", "covertype", "kdd_census")
MADE_RARE = ("acs_income", "nycflights13", "covertype")
SMALL = {"1,200 rows, 87 positives": (1200, 87), "3,000 rows, 115 positives": (3000, 115)}
SITES = 4
"""Of a small federation."""


def table_names() -> tuple[str, ...]:
    """All tables, the small federations last."""
    rare = [rare_name(name, rate) for rate in RARE for name in MADE_RARE]
    return (*REAL, *rare, *_SHAPES, *SMALL)


def real_names() -> tuple[str, ...]:
    """The seven tables that accuracy is judged on: four as they are, three at 1 %."""
    return (*REAL, *(rare_name(name, RARE[0]) for name in MADE_RARE))


def rare_name(name: str, rate: float) -> str:
    """What a table is called once its positives make up `rate`."""
    return f"{name} {100 * rate:g} %"


@lru_cache(maxsize=4)
def crowded_table(name: str) -> Scored:
    """One of `table_names`, or of `odd_names`."""
    if name in odd_names():
        return Scored(name, odd_examples(name))
    if name in _SHAPES:
        return Scored(name, _SHAPES[name](np.random.default_rng(17)))
    generator = np.random.default_rng(5)
    if name in SMALL:
        size, positives = SMALL[name]
        rare = made_rare(_real("acs_income"), positives / size, generator)
        return Scored(name, _with_positives(rare, size, positives, generator))
    for rate in RARE:
        if name.endswith(suffix := rare_name("", rate)):
            return Scored(name, made_rare(_real(name.removesuffix(suffix)), rate, generator))
    return Scored(name, _real(name))


def made_rare(examples: Examples, rate: float, generator: np.random.Generator) -> Examples:
    """So few positives that they make up `rate`, and scores moved to that prevalence.

    s' = ws / (ws + 1 - s), where w is the ratio of the new odds of a positive to the old.
    """
    before = examples.positives / len(examples)
    few = thinned(examples, rate, generator)
    odds = rate / (1.0 - rate) / (before / (1.0 - before))
    return Examples(few.labels, odds * few.scores / (odds * few.scores + 1.0 - few.scores))


def quantile_thresholds(examples: Examples) -> dict[str, float]:
    """The thresholds 0.1 and 0.5, and quantiles of the scores, by what they are called."""
    named = {"0.1": 0.1, "0.5": 0.5}
    cuts = np.quantile(examples.scores, QUANTILES, method="lower")
    named |= {f"q{100 * q:g}": float(t) for q, t in zip(QUANTILES, cuts, strict=True)}
    inside = {t: name for name, t in reversed(named.items()) if 0.0 < t < 1.0}
    return {name: t for t, name in sorted(inside.items())}


def asked_thresholds(name: str, read_at: dict[str, float]) -> tuple[float, ...]:
    """Those that a survey of a table is made for: all where an operator knows them.

    Of made-up shapes it knows 0.1 and 0.5 only: edges at their quantiles would tell it
    where the scores lie.
    """
    return tuple(threshold for label, threshold in read_at.items() if is_asked(name, label))


def is_asked(name: str, label: str) -> bool:
    """Whether a survey of a table is made for the threshold of that name."""
    return name not in (*_SHAPES, *odd_names()) or not label.startswith("q")


def is_small(name: str) -> bool:
    """Whether a table is one of a small federation."""
    return name in SMALL or name in ODD_HOSPITALS


@lru_cache(maxsize=1)
def _shared() -> dict[str, Examples]:
    found = {table.name.rpartition("_")[0]: table.examples for table in load(SHARED)}
    return {name: found[name] for name in REAL if name in found}


def _real(name: str) -> Examples:
    shared = _shared()
    if name not in shared:
        raise SystemExit(f"no table {name} in {SHARED}; put the scored tables there")
    return shared[name]


def _with_positives(
    examples: Examples, size: int, positives: int, generator: np.random.Generator
) -> Examples:
    """A random sample with so many positives."""
    parts = [
        rows(examples.rows(examples.labels == label), count, generator)
        for label, count in ((0, size - positives), (1, positives))
    ]
    return Examples(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.scores for part in parts]),
    )


def _spikes(generator: np.random.Generator) -> Examples:
    """A smooth mass, and two rows in five on five values."""
    scores = generator.beta(2.0, 5.0, SYNTHETIC_ROWS)
    tied = generator.random(SYNTHETIC_ROWS) < 0.4
    values = np.array([0.031, 0.117, 0.2, 0.373, 0.62])
    scores[tied] = generator.choice(values, int(tied.sum()), p=[0.3, 0.3, 0.2, 0.1, 0.1])
    return labelled(scores, 0.02 + 0.9 * scores, generator)


def _ten_values(generator: np.random.Generator) -> Examples:
    values = np.array([0.02, 0.05, 0.08, 0.13, 0.21, 0.34, 0.45, 0.55, 0.72, 0.91])
    shares = np.array([0.22, 0.18, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04, 0.03, 0.02])
    scores = generator.choice(values, SYNTHETIC_ROWS, p=shares)
    return labelled(scores, scores, generator)


def _ends(generator: np.random.Generator) -> Examples:
    """A third of the scores is exactly 0, one in twelve exactly 1."""
    scores = generator.beta(0.8, 1.2, SYNTHETIC_ROWS)
    place = generator.random(SYNTHETIC_ROWS)
    scores[place < 1 / 3] = 0.0
    scores[place > 11 / 12] = 1.0
    return labelled(scores, 0.02 + 0.94 * scores, generator)


def _u_shape(generator: np.random.Generator) -> Examples:
    scores = generator.beta(0.3, 0.3, SYNTHETIC_ROWS)
    return labelled(scores, 0.05 + 0.9 * scores, generator)


def _one_class(generator: np.random.Generator) -> Examples:
    """Negatives within [0, 0.01], positives, one row in ten, all over."""
    labels = (generator.random(SYNTHETIC_ROWS) < 0.1).astype(np.int8)
    crowded = 0.01 * generator.beta(0.7, 2.0, SYNTHETIC_ROWS)
    return Examples(labels, np.where(labels, generator.beta(0.6, 1.4, SYNTHETIC_ROWS), crowded))


def _rare_crowd(generator: np.random.Generator) -> Examples:
    """0.9 % positives, lognormal scores around 1e-4, ROC AUC 0.99."""
    labels = (generator.random(SYNTHETIC_ROWS) < 0.009).astype(np.int8)
    spread = 1.1
    apart = 3.29 * spread  # sqrt(2) times the normal quantile of 0.99
    logs = np.log(1e-4) + spread * generator.normal(size=SYNTHETIC_ROWS) + apart * labels
    return Examples(labels, np.minimum(np.exp(logs), 1.0))


def _clump(generator: np.random.Generator) -> Examples:
    """0.5 % positives; nearly all scores within a tenth of 8e-5, in an order that matters."""
    labels = (generator.random(SYNTHETIC_ROWS) < 0.005).astype(np.int8)
    scores = 8e-5 * np.exp(0.03 * generator.normal(size=SYNTHETIC_ROWS) + 0.03 * labels)
    clear = labels.astype(np.bool_) & (generator.random(SYNTHETIC_ROWS) < 0.3)
    scores[clear] = generator.beta(0.5, 3.0, int(clear.sum()))
    return Examples(labels, scores)


_SHAPES: Mapping[str, Callable[[np.random.Generator], Examples]] = {
    "spikes": _spikes,
    "ten values": _ten_values,
    "mass at 0 and 1": _ends,
    "U-shaped": _u_shape,
    "one class crowded": _one_class,
    "0.9 %, AUC 0.99": _rare_crowd,
    "0.5 % at 8e-5": _clump,
}
