"""Sections of a page about figures that are lacking: they say so, and draw nothing."""

from math import nan
from pathlib import Path

import numpy as np

import fedassay
from fedassay import ScoreHistogram
from fedassay.comparison.side_by_side import compare
from fedassay.estimate import Estimate, Interval, NotEnoughData
from fedassay.group_names import GroupNames
from fedassay.groups import GroupComparison, GroupCounts
from fedassay.report import forest_figure as forests
from fedassay.report.calibration_figures import calibration_figure, score_reach, smooth_rates
from fedassay.report.comparison_page import comparison_page
from fedassay.report.history_chart import write_history_chart
from fedassay.report.sections import error_sources, groups
from fedassay.report.sections import sites as site_section
from fedassay.sites import SeenSites, pool_sites, site_effects
from fedassay.tracking.history import History
from tests.surveys import counted

EDGES = np.array([0.0, 0.5, 1.0])


def of_groups(**counts: list[list[float]]) -> GroupComparison:
    histograms = {name: ScoreHistogram(EDGES, np.array(each)) for name, each in counts.items()}
    rows = {name: Estimate(each.total) for name, each in histograms.items()}
    made = GroupCounts(GroupNames("sex", ("F", "M")), histograms, rows)
    return GroupComparison(made, (0.5,), "F", ("recall@0.5",))


def test_groups_that_surely_differ_are_named_and_the_others_are_not() -> None:
    far = of_groups(F=[[800.0, 200.0], [100.0, 900.0]], M=[[800.0, 200.0], [600.0, 400.0]])
    assert groups._sentence(far).startswith("Groups of sex differ surely from F in: ")
    assert "of M" in groups._sentence(far)
    near = of_groups(F=[[8.0, 2.0], [4.0, 6.0]], M=[[8.0, 2.0], [5.0, 5.0]])
    assert groups._sentence(near).startswith("Between the groups of sex no difference is sure")


def test_groups_without_a_class_have_no_forest_no_gap_and_no_count() -> None:
    empty = of_groups(F=[[8.0, 2.0], [0.0, 0.0]], M=[[8.0, 2.0], [0.0, 0.0]])
    assert groups._forest(empty, "recall@0.5") is None
    gap = empty.gaps("recall@0.5")["M"]
    assert groups._gap_texts(gap) == ("not enough data", "–")
    assert groups._counted(NotEnoughData(reason="few")) == "held back: too few"
    assert groups._counted(Estimate(1234.0)) == "1,234"


def test_a_comparison_of_what_neither_has_draws_nothing() -> None:
    one_class = counted([[3, 2], [0, 0]])
    page = comparison_page(compare({"old": one_class, "new": one_class}, metrics=["recall@0.5"]))
    assert "not enough data" in page
    assert 'id="compared-recall' not in page


def test_a_forest_without_a_mean_or_without_rows_still_has_a_frame() -> None:
    none = site_effects("roc_auc", {"north": NotEnoughData(reason="few")})
    found = pool_sites(none)
    drawn = forests.forest_figure(none, found)
    assert drawn.count('class="row"') == 0
    assert forests.limits([]) == (0.0, 1.0)
    assert forests.limits([forests.Row("a", nan, Interval(nan, nan), "site")]) == (0.0, 1.0)
    assert site_section._sentence(found).startswith("No site has enough rows of both classes")


def test_a_table_of_more_sites_than_are_drawn_says_so() -> None:
    histogram = ScoreHistogram(EDGES, np.ones((2, 2)))
    many = SeenSites({f"site {number}": histogram for number in range(61)})
    assert "plots show 60" in site_section._every_site(many)
    few = SeenSites({f"site {number}": histogram for number in range(60)})
    assert "plots show" not in site_section._every_site(few)


def test_no_figure_has_no_error_to_take_apart() -> None:
    assert error_sources._sentence({}, "nothing").startswith("No figure is available")


def test_errors_of_two_steps_are_not_said_to_need_a_second() -> None:
    labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]

    def asked(steps: int) -> fedassay.Assessment:
        return fedassay.simulate(
            labels, scores, privacy="distributed", epsilon=4, seed=0, steps=steps
        )

    once, twice = asked(1), asked(2)
    assert "a second step (--steps 2)" in error_sources._for_cells(once)
    assert "second step" not in error_sources._for_cells(twice)
    assert "--threshold" in error_sources._for_cells(twice)
    # Exact sums have no second step; their cells are as small as they may be.
    exact = fedassay.simulate(labels, scores, seed=0)
    hidden = {"roc_auc": Estimate(0.8, binning_sd=0.1)}
    assert error_sources._sentence(hidden, error_sources._for_cells(exact)) == (
        "Everywhere the largest part is what the survey's cells hide: more rows would help, since "
        "each holds at least 10 of either label."
    )


def test_a_calibration_picture_of_one_class_has_bins_and_no_curve() -> None:
    one_class = ScoreHistogram(np.arange(5) / 4, np.array([[4.0, 3.0, 2.0, 1.0], np.zeros(4)]))
    assert smooth_rates(one_class) is None
    drawn = calibration_figure(one_class, None, None)
    assert "smooth curve" not in drawn
    assert "bins with 95 % intervals" in drawn


def test_counts_of_nothing_are_drawn_over_all_scores() -> None:
    assert score_reach(ScoreHistogram(EDGES, np.zeros((2, 2)))) == 1.0


def test_metrics_of_a_history_share_one_axis_of_time(tmp_path: Path) -> None:
    looks = History({f"2026-{month}": counted([[3, 2], [2, 3]]) for month in (10, 11)})
    path = tmp_path / "history.svg"
    write_history_chart(looks, ["prevalence", "recall@0.5"], [], path)
    text = path.read_text()
    assert text.count("<!-- 2026-10 -->") == 1


def test_bins_beyond_the_picture_are_left_out_of_it() -> None:
    """All but one of 20,001 rows have scores below 0.05, and so ends the picture."""
    counts = np.zeros((2, 20))
    counts[:, 0], counts[1, 18] = [19_600.0, 400.0], 1.0
    rare = ScoreHistogram(np.arange(21) / 20, counts)
    assert score_reach(rare) == 0.05
    near = ScoreHistogram(np.arange(21) / 20, np.where(counts > 1.0, counts, 0.0))
    pages = [calibration_figure(each, None, None) for each in (rare, near)]
    # The interval and the point of the one bin that there is to see.
    assert [page.count('class="bin"') for page in pages] == [2, 2]
