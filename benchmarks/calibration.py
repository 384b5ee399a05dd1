"""BBQ from a histogram of a million rows, against netcal's on the rows."""

from contextlib import redirect_stderr
from io import StringIO

import numpy as np

from benchmarks.page import Aim, Section
from benchmarks.rows import scored_rows
from benchmarks.timing import median_of, race, shown, three_digits
from fedassay.calibration import fit_auto, fit_bbq, fit_beta, fit_sigmoid, fit_temperature
from fedassay.histogram import ScoreHistogram

_ROWS = 1_000_000
_OURS = "fedassay: `fit_bbq`"
_WANTED_RATIO = 300
_SCALED_ROWS = 100_000


def measure(*, quick: bool) -> Section:
    """Fit once with netcal, which takes minutes, and several times with ours."""
    rows = 20_000 if quick else _ROWS
    labels, scores = scored_rows(rows, generator=np.random.default_rng(31))
    histogram = ScoreHistogram.from_scores(labels, scores)
    seconds = race(
        2 if quick else 10,
        {
            "fedassay: histogram of the rows": lambda: ScoreHistogram.from_scores(labels, scores),
            _OURS: lambda: fit_bbq(histogram),
            "fedassay: `fit_auto`": lambda: fit_auto(histogram),
        },
    )
    theirs, distance = _netcal(labels, scores, histogram)
    ratio = theirs / seconds[_OURS]
    return Section(
        title="Calibration",
        about=f"{rows:,} rows. BBQ averages binnings of M^(1/3)/10 to 10 M^(1/3) buckets: ours "
        "from the histogram, with the paper's quantile buckets and Gamma score; netcal's from "
        "the rows, with buckets of equal width and an information criterion, one run. On these "
        f"scores the two maps are {distance:.4f} apart on average. On "
        f"{_SCALED_ROWS:,} rows netcal's scaling methods, fitted to the rows, and ours, from "
        f"their histogram, differ nowhere by more than {_farthest_scaling():.0e}.",
        header=("what", "time"),
        rows=[
            *((name, shown(taken)) for name, taken in seconds.items()),
            ("netcal: `BBQ.fit`, one run", shown(theirs)),
        ],
        aims=[
            Aim(
                f"BBQ from the histogram {_WANTED_RATIO} times faster than netcal's on the rows; "
                f"measured {three_digits(ratio)} times",
                ratio >= _WANTED_RATIO,
            )
        ],
    )


def _netcal(
    labels: np.ndarray[tuple[int], np.dtype[np.int8]],
    scores: np.ndarray[tuple[int], np.dtype[np.float64]],
    histogram: ScoreHistogram,
) -> tuple[float, float]:
    """Seconds to fit, and the mean distance between both maps on some of the rows."""
    from netcal.binning import BBQ

    model = BBQ()
    with redirect_stderr(StringIO()):
        # Its progress bar would be most of the output.
        taken = median_of(1, lambda: model.fit(scores, labels))
        found = model.transform(scores[:10_000])
    ours = fit_bbq(histogram).predict(scores[:10_000])
    return taken, float(np.abs(np.asarray(found) - ours).mean())


def _farthest_scaling() -> float:
    """The largest distance between maps of the same family, fitted to rows and to a histogram."""
    from netcal.scaling import BetaCalibration, LogisticCalibration, TemperatureScaling

    labels, scores = scored_rows(_SCALED_ROWS, generator=np.random.default_rng(31))
    scores = np.sqrt(scores)
    histogram = ScoreHistogram.from_scores(labels, scores)
    farthest = 0.0
    for model, fit in (
        (TemperatureScaling(), fit_temperature),
        (BetaCalibration(), fit_beta),
        (LogisticCalibration(), fit_sigmoid),
    ):
        with redirect_stderr(StringIO()):
            model.fit(scores, labels)
            theirs = np.asarray(model.transform(scores)).ravel()
        ours = fit(histogram).predict(scores)
        farthest = max(farthest, float(np.abs(theirs - ours).max()))
    return farthest
