"""Error against clients for the three privacy models, with the user's case marked."""

from dataclasses import replace
from fractions import Fraction
from math import isfinite
from pathlib import Path

from fedassay.extras import needed_for
from fedassay.mechanisms import Privacy, UnitKind
from fedassay.planning.forecast import expected_reports
from fedassay.planning.open_settings import under_privacy
from fedassay.planning.plan import Plan, Progress
from fedassay.planning.request import Preset, SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.planning.solve import predicted
from fedassay.report.charts import save_figure

_CLIENTS = (1_000, 4_000, 20_000, 100_000, 400_000, 2_000_000, 10_000_000)


def curve(request: SurveyRequest, privacy: Privacy, metric: str) -> list[tuple[int, float]]:
    """The 95 % error of a metric over numbers of clients; where there is an answer."""
    points = []
    for clients in _CLIENTS:
        asked = _like(request, privacy, clients)
        error_quantile = predicted(asked, design_survey(asked), metric).error_quantile()
        if isfinite(error_quantile) and error_quantile < 1.0:
            points.append((clients, error_quantile))
    return points


def write_plan_plot(plan: Plan, path: Path, *, progress: Progress) -> None:
    """Draw the curves, the target, and the plan's own case."""
    with needed_for("drawing"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    metric, request = plan.goal.target.metric, plan.request
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for privacy in Privacy:
        if privacy is Privacy.SITE and not _has_sites(request):
            continue
        progress(f"drawing {privacy.value}")
        label = privacy.value
        if privacy.spends_epsilon:
            label += f", ε = {float(_epsilon(request)):g}"
        points = curve(request, privacy, metric)
        if points:
            # Without noise often lies under distributed noise: dashes let both be seen.
            style = "solid" if privacy.spends_epsilon else (0, (5, 4))
            order = 2 if privacy.spends_epsilon else 3
            axes.loglog(
                *zip(*points, strict=True),
                marker=".",
                color=_colour(privacy),
                linestyle=style,
                linewidth=2.5,
                zorder=order,
                label=label,
            )
    axes.axhline(plan.goal.target.error, color="grey", linestyle=":", label="target")
    error_quantile = plan.central.error_quantile()
    if isfinite(error_quantile):
        axes.plot(
            [expected_reports(request)],
            [error_quantile],
            marker="*",
            zorder=4,
            markersize=16,
            linestyle="none",
            color=_colour(request.privacy),
            markeredgecolor="black",
            label="this plan",
        )
    axes.set_xlabel("clients")
    axes.set_ylabel(f"error of {metric} that 95 % of surveys stay below")
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend()
    save_figure(figure, path)


def _colour(privacy: Privacy) -> str:
    match privacy:
        case Privacy.SECURE:
            return "tab:green"
        case Privacy.DISTRIBUTED:
            return "tab:blue"
        case Privacy.SITE:
            return "tab:purple"
        case Privacy.LOCAL:
            return "tab:red"
        case Privacy.SHUFFLED:
            return "tab:orange"


def _has_sites(request: SurveyRequest) -> bool:
    """Of sites with one row each nobody asks, and site privacy protects no whole site."""
    has_rows = request.examples is not None or request.privacy is Privacy.SITE
    return has_rows and request.unit.kind is not UnitKind.CLIENT


def _epsilon(request: SurveyRequest) -> Fraction:
    return request.epsilon or Fraction(1)


def _like(request: SurveyRequest, privacy: Privacy, clients: int) -> SurveyRequest:
    per_client = (request.examples or 0) / (request.clients or 1)
    fanout = None if request.height is None else request.fanout
    return replace(
        under_privacy(replace(request, preset=Preset.DEFAULT, fanout=fanout), privacy),
        clients=clients,
        examples=round(per_client * clients) if per_client else None,
    )
