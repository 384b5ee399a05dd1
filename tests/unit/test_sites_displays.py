"""A forest plot shows every site, the mean and a new site's interval, in pictures and in words."""

from io import BytesIO

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.sites import ForestDisplay, pool_sites, site_effects

AUCS = (0.74, 0.76, 0.77, 0.78, 0.78, 0.79, 0.80, 0.81, 0.83)


def effects(*aucs: float, **others: Estimate) -> ForestDisplay:
    found = {f"site {i}": Estimate(auc, sampling_sd=0.01) for i, auc in enumerate(aucs)}
    return ForestDisplay.from_effects(site_effects("roc_auc", found | others))


def words(display: ForestDisplay) -> tuple[list[str], list[str]]:
    """What stands at the left and at the right."""
    ax = display.ax_
    (right,) = ax.child_axes
    left = [label.get_text() for label in ax.get_yticklabels()]
    return left, [label.get_text() for label in right.get_yticklabels()]


def test_every_site_has_a_line_of_its_own_with_its_figures() -> None:
    display = effects(*AUCS)
    names, figures = words(display)
    assert names == [*(f"site {i}" for i in range(9)), "mean over sites", "a new site"]
    # 0.74 and 0.01: a logit of 1.046 and a standard deviation of 0.052.
    half = 1.959964 * 0.01 / (0.74 * 0.26)
    odds = np.log(0.74 / 0.26) + half * np.array([-1.0, 1.0])
    ends = 1.0 / (1.0 + np.exp(-odds))
    assert figures[0] == f"0.740 [{ends[0]:.3f}, {ends[1]:.3f}]"
    found = pool_sites(display.effects)
    assert figures[-1] == "{:.3f} to {:.3f}".format(*found.prediction)


def test_the_new_sites_interval_is_drawn_and_wholly_in_the_picture() -> None:
    display = effects(*AUCS)
    drawn = {line.get_label(): line for line in display.ax_.get_lines()}
    line = drawn["a new site, 95 %"]
    low, high = display.heterogeneity.prediction
    assert line.get_xdata() == pytest.approx([low, high])
    left, right = display.ax_.get_xlim()
    assert left < low < high < right


def test_a_site_that_is_not_pooled_is_shown_as_such() -> None:
    names, figures = words(effects(*AUCS, tiny=NotEnoughData(reason="no positives")))
    assert figures[names.index("tiny")] == "not pooled"


def test_few_sites_are_drawn_without_what_cannot_be_said() -> None:
    for aucs in ((0.8,), (0.75, 0.85)):
        names, figures = words(effects(*aucs))
        assert figures[names.index("a new site")] == "cannot be said"
    nothing = ForestDisplay.from_effects(site_effects("roc_auc", {"a": NotEnoughData()}))
    assert words(nothing)[0] == ["a"]


def test_a_picture_grows_with_its_sites_and_can_be_drawn_elsewhere() -> None:
    short, tall = effects(*AUCS), effects(*np.linspace(0.7, 0.9, 51))
    assert tall.ax_.figure.get_figheight() > 2.0 * short.ax_.figure.get_figheight()
    ax = Figure().subplots()
    assert short.plot(ax=ax).ax_ is ax
    stream = BytesIO()
    ax.figure.savefig(stream, format="png")
    assert len(stream.getvalue()) > 5_000


def test_one_line_says_mean_and_new_site() -> None:
    text = repr(effects(*AUCS))
    assert text.startswith("<ForestDisplay sites: roc_auc over 9 sites: mean 0.78")
    assert "a new site 0.7" in text


def test_what_is_no_effects_is_refused() -> None:
    with pytest.raises(SettingInvalid, match="Use histogram_effects"):
        ForestDisplay.from_effects([0.8])  # type: ignore[arg-type]  # what a user may pass
