"""Sites on the command line: a table of them, what differs between them, and what is advised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from fedassay.assessment import Assessment
from fedassay.cli import options
from fedassay.cli.console import figures_table
from fedassay.cli.outputs import Voice
from fedassay.errors import SettingInvalid
from fedassay.estimate_json import estimates_json
from fedassay.sites.between import BetweenSites, SeenSites
from fedassay.sites.predictive import TauPrior
from fedassay.sites.shown import (
    advice_json,
    advice_lines,
    heterogeneity_json,
    sites_parts,
    tau_priors,
    wanted_values,
)

WantedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--wanted",
        metavar="METRIC=V",
        help="Value that a new site should reach, such as roc_auc=0.8; may be repeated.",
        rich_help_panel=options.FIGURES,
    ),
]
TauPriorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tau-prior",
        metavar="METRIC=M,SD",
        help="What others found of how sites differ, such as roc_auc=0.055,0.015; repeatable.",
        rich_help_panel=options.FIGURES,
    ),
]


@dataclass(frozen=True, slots=True)
class SiteQuestions:
    """What is asked about sites beside the usual."""

    thresholds: tuple[float, ...] = ()
    more: tuple[str, ...] = ()
    wanted: Mapping[str, float] = field(default_factory=dict)
    priors: Mapping[str, TauPrior] = field(default_factory=dict)

    @classmethod
    def asked(
        cls,
        thresholds: tuple[float, ...],
        more: Sequence[str],
        wanted: Sequence[str] | None,
        priors: Sequence[str] | None = None,
    ) -> "SiteQuestions":
        """From the options of a command."""
        goals = wanted_values(wanted or (), thresholds)
        return cls(thresholds, tuple(more), goals, tau_priors(priors or ()))

    def fitting(self, sites: BetweenSites | None) -> "SiteQuestions":
        """What these sites can answer; a wanted value that none can is refused."""
        if isinstance(sites, SeenSites):
            return self
        known = () if sites is None else tuple(sites.moments)
        for metric in self.wanted:
            if metric not in known:
                raise SettingInvalid(
                    f"of {metric} at single sites nothing is known here, so that a new site's "
                    f"cannot be told; found it wanted. Known: {', '.join(known) or 'nothing'}. "
                    "Ask with privacy site."
                )
        if self.priors:
            raise SettingInvalid(
                "a prior for tau needs sites that may be seen; here they may not. "
                "Leave --tau-prior out, or ask with privacy site."
            )
        return SiteQuestions(self.thresholds, (), self.wanted)


def sites_content(sites: BetweenSites | None, questions: SiteQuestions) -> dict[str, Any]:
    """Every site's figures where sites may be seen, and what differs between sites."""
    asked = questions.fitting(sites)
    if sites is None:
        return {}
    content: dict[str, Any] = {}
    if isinstance(sites, SeenSites):
        found = sites.estimates(asked.thresholds, asked.more)
        content["sites"] = {name: estimates_json(estimates) for name, estimates in found.items()}
    content["heterogeneity"] = heterogeneity_json(sites, asked.more, asked.wanted, asked.priors)
    return content


def say_sites(voice: Voice, sites: BetweenSites | None, questions: SiteQuestions) -> None:
    """Print what pooled intervals cover, the sites, and what a new one may show."""
    asked = questions.fitting(sites)
    if voice.as_json or voice.quiet:
        return
    for part in sites_parts(sites, asked.more, asked.wanted, asked.priors):
        voice.say()
        voice.say(part if isinstance(part, str) else figures_table(*part))


def recalibration_of(assessment: Assessment) -> tuple[list[str], dict[str, Any]]:
    """Whether to recalibrate, in lines and in JSON's terms; why not, where nobody can say."""
    try:
        advice = assessment.recalibration()
    except SettingInvalid as error:
        return [f"No advice on recalibration: {error}"], {"recalibration": None}
    return advice_lines(advice), {"recalibration": advice_json(advice)}
