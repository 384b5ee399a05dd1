"""Tables that the study of coverage was not made on: odd ways in which classifiers score."""

from collections.abc import Callable, Mapping

import numpy as np

from fedassay.examples import Examples, FloatArray

ODD_ROWS = 60_000
HOSPITAL_ROWS = 2_400
"""Of a small federation with such scores."""


def odd_names() -> tuple[str, ...]:
    """All of them, those of small federations last."""
    return (*_ODD, *ODD_HOSPITALS)


def odd_examples(name: str) -> Examples:
    """One of `odd_names`."""
    generator = np.random.default_rng(23)
    if name in ODD_HOSPITALS:
        return _ODD[ODD_HOSPITALS[name]](HOSPITAL_ROWS, generator)
    return _ODD[name](ODD_ROWS, generator)


def labelled(scores: FloatArray, rates: FloatArray, generator: np.random.Generator) -> Examples:
    """Rows whose labels are drawn at rates that are given."""
    return Examples((generator.random(len(scores)) < rates).astype(np.int8), scores)


Shape = Callable[[int, np.random.Generator], Examples]


def _leaves(count: int) -> Shape:
    """The leaves of a tree: so many scores, of any size, that are nearly calibrated."""

    def shape(rows: int, generator: np.random.Generator) -> Examples:
        values = np.sort(generator.beta(0.7, 2.0, count))
        scores = generator.choice(values, rows, p=generator.dirichlet(np.ones(count)))
        return labelled(scores, np.clip(1.1 * scores, 0.01, 0.99), generator)

    return shape


def _rounded(places: int) -> Shape:
    """Scores written with few decimals, exact zeros among them."""

    def shape(rows: int, generator: np.random.Generator) -> Examples:
        exact = generator.beta(0.8, 3.0, rows)
        return labelled(np.round(exact, places), exact, generator)

    return shape


def _by_default(value: float, share: float) -> Shape:
    """Rows without a score have a value by default."""

    def shape(rows: int, generator: np.random.Generator) -> Examples:
        scores = generator.beta(1.0, 4.0, rows)
        rates = scores.copy()
        unscored = generator.random(rows) < share
        scores[unscored] = value
        return labelled(scores, rates, generator)

    return shape


def _within(low: float, high: float) -> Shape:
    """All scores within a narrow interval, whose order matters."""

    def shape(rows: int, generator: np.random.Generator) -> Examples:
        order = generator.beta(2.0, 2.0, rows)
        return labelled(low + (high - low) * order, 0.05 + 0.8 * order**2, generator)

    return shape


def _sharpened(times: float) -> Shape:
    """An overconfident model: log-odds so many times what they should be."""

    def shape(rows: int, generator: np.random.Generator) -> Examples:
        odds = generator.normal(-1.0, 1.5, rows)
        with np.errstate(over="ignore"):
            scores = 1.0 / (1.0 + np.exp(-times * odds))
        return labelled(scores, 1.0 / (1.0 + np.exp(-odds)), generator)

    return shape


def _two_scores(rows: int, generator: np.random.Generator) -> Examples:
    scores = generator.choice([0.2, 0.7], rows, p=[0.8, 0.2])
    return labelled(scores, scores, generator)


def _mostly_zero(rows: int, generator: np.random.Generator) -> Examples:
    """A rule that fires for one row in five; 0 for all others."""
    scores = np.where(generator.random(rows) < 0.8, 0.0, generator.beta(2.0, 3.0, rows))
    return labelled(scores, 0.01 + 0.8 * scores, generator)


def _hard_labels(rows: int, generator: np.random.Generator) -> Examples:
    """A classifier that says 0 or 1 and is right nine times in ten."""
    labels = (generator.random(rows) < 0.2).astype(np.int8)
    wrong = generator.random(rows) < 0.1
    return Examples(labels, np.where(wrong, 1 - labels, labels).astype(np.float64))


def _half_at_a_threshold(rows: int, generator: np.random.Generator) -> Examples:
    """Half of all rows exactly at 0.5."""
    scores = generator.beta(1.0, 2.0, rows)
    scores[generator.random(rows) < 0.5] = 0.5
    return labelled(scores, scores, generator)


def _tiny(rows: int, generator: np.random.Generator) -> Examples:
    """Scores around 1e-9 for one positive in fifty."""
    labels = (generator.random(rows) < 0.02).astype(np.int8)
    return Examples(labels, 1e-9 * np.exp(generator.normal(size=rows) + 1.5 * labels))


def _very_rare(rows: int, generator: np.random.Generator) -> Examples:
    """One positive in 2,000."""
    labels = (generator.random(rows) < 0.0005).astype(np.int8)
    return Examples(labels, 1.0 / (1.0 + np.exp(7.6 - generator.normal(2.0 * labels, 1.0))))


def _step(rows: int, generator: np.random.Generator) -> Examples:
    """Rates that jump between two scores."""
    scores = generator.beta(1.5, 2.5, rows)
    return labelled(scores, np.where(scores < 0.37, 0.05, 0.85), generator)


def _anti_predictive(rows: int, generator: np.random.Generator) -> Examples:
    scores = generator.beta(2.0, 3.0, rows)
    return labelled(scores, 0.8 - 0.75 * scores, generator)


def _perfect(rows: int, generator: np.random.Generator) -> Examples:
    scores = generator.beta(0.6, 1.2, rows)
    return Examples((scores > 0.6).astype(np.int8), scores)


def _ranks(rows: int, generator: np.random.Generator) -> Examples:
    """Ranks for scores, and labels that go up and down with them."""
    ranks = generator.permutation(rows) / rows
    return labelled(ranks, 0.3 + 0.25 * np.sin(9.0 * ranks), generator)


def _quarters(rows: int, generator: np.random.Generator) -> Examples:
    """A points system: log-odds in quarters."""
    odds = np.round(4.0 * generator.normal(-2.5, 1.2, rows)) / 4.0
    scores = 1.0 / (1.0 + np.exp(-odds))
    return labelled(scores, scores, generator)


def _tied_class(label: int) -> Shape:
    """All rows of a label have one score."""

    def shape(rows: int, generator: np.random.Generator) -> Examples:
        labels = (generator.random(rows) < 0.15).astype(np.int8)
        return Examples(labels, np.where(labels == label, 0.3, generator.beta(1.5, 2.5, rows)))

    return shape


def _positives_at_one(rows: int, generator: np.random.Generator) -> Examples:
    labels = (generator.random(rows) < 0.1).astype(np.int8)
    return Examples(labels, np.where(labels, 1.0, generator.beta(1.0, 6.0, rows)))


def _random_labels(rows: int, generator: np.random.Generator) -> Examples:
    return labelled(generator.beta(2.0, 2.0, rows), np.full(rows, 0.3), generator)


def _near_one(rows: int, generator: np.random.Generator) -> Examples:
    """Nine positives in ten, scores that pile up below 1."""
    odds = generator.normal(6.0, 2.0, rows)
    return labelled(1.0 / (1.0 + np.exp(-odds)), 1.0 / (1.0 + np.exp(1.0 - 0.6 * odds)), generator)


def _two_clumps(rows: int, generator: np.random.Generator) -> Examples:
    """Scores near 1e-5 or near 0.999, each with an order of its own."""
    high = generator.random(rows) < 0.1
    order = generator.normal(size=rows)
    scores = np.where(high, 1.0 - 1e-3 * np.exp(-0.2 * order), 1e-5 * np.exp(0.2 * order))
    return labelled(scores, 1.0 / (1.0 + np.exp(-order - np.where(high, 1.0, -4.0))), generator)


def _half_precision(rows: int, generator: np.random.Generator) -> Examples:
    """Scores that went through sixteen-bit floats."""
    odds = generator.normal(-4.0, 2.0, rows)
    scores = (1.0 / (1.0 + np.exp(-odds))).astype(np.float16).astype(np.float64)
    return labelled(scores, scores, generator)


_ODD: Mapping[str, Shape] = {
    "two scores": _two_scores,
    "three leaves": _leaves(3),
    "twelve leaves": _leaves(12),
    "forty leaves": _leaves(40),
    "one decimal": _rounded(1),
    "percent": _rounded(2),
    "three decimals": _rounded(3),
    "80 % exactly 0": _mostly_zero,
    "says 0 or 1": _hard_labels,
    "half at 0.5": _half_at_a_threshold,
    "around 1e-9": _tiny,
    "1 in 2,000": _very_rare,
    "rates by a step": _step,
    "anti-predictive": _anti_predictive,
    "perfect": _perfect,
    "naive Bayes": _sharpened(8.0),
    "overconfident": _sharpened(3.0),
    "1 % 0 by default": _by_default(0.0, 0.01),
    "0.5 % 1 by default": _by_default(1.0, 0.005),
    "ranks": _ranks,
    "quarters of log-odds": _quarters,
    "positives tied": _tied_class(1),
    "negatives tied": _tied_class(0),
    "positives at 1": _positives_at_one,
    "within .4 and .6": _within(0.4, 0.6),
    "within .5 ± 1e-4": _within(0.4999, 0.5001),
    "random labels": _random_labels,
    "near 1": _near_one,
    "two clumps": _two_clumps,
    "half precision": _half_precision,
}

ODD_HOSPITALS: Mapping[str, str] = {
    f"hospitals: {name}": name
    for name in (
        "three leaves",
        "twelve leaves",
        "percent",
        "80 % exactly 0",
        "says 0 or 1",
        "rates by a step",
        "overconfident",
        "1 % 0 by default",
        "quarters of log-odds",
        "positives at 1",
    )
}
"""What the hospitals of a small federation score like."""
