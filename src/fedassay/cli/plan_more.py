"""What `fedassay plan` says of more than one number: two models, looks, groups and classes."""

from math import isfinite
from pathlib import Path

from fedassay.classes.design_costs import design_costs
from fedassay.cli.class_files import class_names
from fedassay.cli.console import plain, working
from fedassay.cli.outputs import Voice
from fedassay.errors import SettingInvalid
from fedassay.planning.attributes import AttributeCost, attribute_costs
from fedassay.planning.pair_gain import pair_gain
from fedassay.planning.pair_model import References
from fedassay.planning.request import SurveyRequest
from fedassay.planning.track import Looks, plan_track
from fedassay.presentation import aligned

CLASSES_PLANNED_FORMAT = "fedassay.classes-planned/1"
GROUPS_PLANNED_FORMAT = "fedassay.groups-planned/1"


def plan_several(
    request: SurveyRequest, voice: Voice, scores: str | None, groups: list[str], *, has_more: bool
) -> None:
    """Say what classes cost, or groups; nothing else is asked with them."""
    if has_more or (scores is not None and groups):
        raise SettingInvalid(
            "--scores and --groups each say what a way to ask costs; found both, or an option for "
            "one survey of one score. Leave it out."
        )
    if scores is not None:
        plan_classes(request, voice, scores)
    else:
        plan_groups(request, voice, groups)


def plan_classes(request: SurveyRequest, voice: Voice, scores: str) -> None:
    """Say what K classes cost by each way to ask, the best first."""
    names = class_names(scores)
    with working() as say:
        say("every way to ask about classes")
        costs = design_costs(request, names)
    best = costs[0]
    voice.result(
        {
            "format": CLASSES_PLANNED_FORMAT,
            "classes": list(names),
            "design": best.design.value,
            "designs": [each.to_json() for each in costs],
        }
    )
    if not request.privacy.spends_epsilon:
        voice.say("Exact sums share nothing: every client answers for every class.")
        return
    rows = [
        [
            each.design.value,
            "one part each" if each.draws_one_part else "all parts",
            f"{each.cells}",
            f"{each.error:.4f}" if each.error < 0.5 else "nothing told",
        ]
        for each in costs
    ]
    voice.say(aligned(["design", "clients answer", "cells", "error of a class"], rows))
    voice.say(
        f"\n{len(names):,} classes: every example is in all of them. {best.design.value} is taken "
        "(--class-design names another): the standard errors of the ROC AUC of a class that is "
        "one of so many alike and of one a quarter as common, added up, are smallest."
    )


def plan_groups(request: SurveyRequest, voice: Voice, groups: list[str]) -> None:
    """Say how well each group is told, and what every attribute more costs."""
    named = [[name.strip() for name in each.split(",") if name.strip()] for each in groups]
    with working() as say:
        say("a survey of each attribute's groups")
        apart, joined = attribute_costs(request, [len(each) for each in named])
    voice.result(
        {
            "format": GROUPS_PLANNED_FORMAT,
            "metric": "roc_auc",
            "attributes": [each.to_json() for each in apart],
            "joined": None if joined is None else joined.to_json(),
        }
    )
    rows = [
        _row(f"{name[0]}, {name[1]}{', ...' if len(name) > 2 else ''}", each)
        for name, each in zip(named, apart, strict=True)
    ]
    if joined is not None:
        rows.append(_row("all joined into one", joined))
    voice.say(aligned(["attribute", "groups", "epsilon", "roc_auc of a group within"], rows))
    voice.say(
        "\nGroups of equal size. An example is in one group of an attribute, so that one epsilon "
        "serves all its groups."
    )
    if joined is not None:
        voice.say(
            f"Overlapping attributes cost epsilon each: {len(apart)} of them are {len(apart)} "
            "surveys, each with its share; joined into one attribute (F/old, ...) they keep all "
            "of epsilon and have fewer rows in a group."
        )


def _row(name: str, cost: AttributeCost) -> list[str]:
    epsilon = "-" if cost.epsilon is None else str(cost.epsilon)
    half = cost.half_width
    return [name, str(cost.groups), epsilon, "nothing told" if half is None else f"{half:.4f}"]


def plan_pair(
    request: SurveyRequest,
    voice: Voice,
    output: Path | None,
    *,
    references: References | None = None,
    has_more: bool,
) -> None:
    """Say what one survey of two models gains, and write it where it is asked for."""
    if has_more:
        raise SettingInvalid(
            "--paired plans one survey of two models; --pipeline and --plot do not go with it. "
            "Leave them out."
        )
    with working() as say:
        say("one survey of both models, and two of one")
        gain = pair_gain(request, references=references)
    if output is not None:
        gain.design.survey.save(output)
    voice.result(gain.to_json())
    voice.say(gain.design.survey.guarantee.sentence())
    voice.say()
    rows = [
        [case.scores, name, *(_half(side[name]) for side in (case.paired, case.unpaired))]
        for case in gain.cases
        for name in case.paired
    ]
    voice.say(aligned(["if scores are", "difference of", "± paired", "± two surveys"], rows))
    voice.say()
    voice.say(gain.sentence())
    if output is not None:
        voice.say(f"Wrote {plain(output)}.")


def _half(width: float) -> str:
    return f"{width:.4f}" if isfinite(width) else "no answer"


def plan_looks(
    request: SurveyRequest,
    voice: Voice,
    track: str,
    metric: str,
    shifts: tuple[float, ...] | None,
    false_alarms: float,
) -> None:
    """Split epsilon over looks such as months=12, and say how soon changes show."""
    looks = Looks.parse(track)
    with working():
        made = plan_track(request, looks, metric=metric, shifts=shifts, false_alarms=false_alarms)
    voice.result(made.to_json())
    for line in made.lines():
        voice.say(line)
