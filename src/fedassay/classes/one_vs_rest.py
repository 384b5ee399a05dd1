"""From the tallies of all parts to one histogram for each class against the rest."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedassay.classes.class_survey import MOST_CONFUSED, ClassSurvey
from fedassay.classes.encodings import Part, PartKind
from fedassay.classes.joined_counts import join_own, scaled_up
from fedassay.classes.published_parts import ConfusionTally, PartTally, published_parts
from fedassay.decoding import DecodeOptions, decode
from fedassay.estimate import NotEnoughData
from fedassay.histogram import ScoreHistogram
from fedassay.tally import Tally


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ClassTables:
    """What is known of all classes: a histogram each, and who is taken for whom."""

    names: tuple[str, ...]
    histograms: tuple[ScoreHistogram | NotEnoughData, ...]
    """Of each class against the rest, or why there is none."""
    top: ScoreHistogram | NotEnoughData
    """Of whether the most probable class is right, by its probability."""
    confusion: ScoreHistogram | NotEnoughData
    """Of pairs of the true and the most probable class, side by side; all in row 0."""
    smallest_cell: int = 0
    """Of exact sums no smaller count is published."""
    seen: ConfusionTally | None = None
    """Which cells of the confusion matrix may be seen, where some may not."""

    @property
    def known(self) -> list[ScoreHistogram]:
        """The histograms of the classes that have one."""
        return [h for h in self.histograms if isinstance(h, ScoreHistogram)]


def decode_classes(
    survey: ClassSurvey, tallies: Sequence[PartTally], *, decode_options: DecodeOptions
) -> ClassTables:
    """Decode every part, scale up what some clients answered, and put classes together.

    Guarantee: post-processing only of what may be published (`published_parts`); whatever the
    parts promise still holds.
    """
    parts = published_parts(survey, tallies)
    clients = units_heard(survey, parts)
    found = {
        (part.kind, part.number): _decoded(part, tally, clients, decode_options)
        for part, tally in zip(survey.parts, parts, strict=True)
    }
    own = found.get((PartKind.OWN, 0))
    numbers = range(len(survey.names))
    apart = [found[PartKind.CLASS, number] for number in numbers]
    joined = apart
    if own is not None:
        joined = [_joined(rest, own, number) for number, rest in enumerate(apart)]
    nothing = NotEnoughData(
        reason=f"a confusion matrix of {len(numbers):,} classes has {len(numbers) ** 2:,} cells; "
        f"beyond {MOST_CONFUSED} classes it is not asked for. Join classes first."
    )
    return ClassTables(
        names=survey.names,
        histograms=tuple(joined),
        top=found.get((PartKind.TOP, 0), NotEnoughData(reason="nobody was asked for it")),
        confusion=found.get((PartKind.CONFUSION, 0), nothing),
        smallest_cell=survey.smallest_cell,
        seen=next((each for each in parts if isinstance(each, ConfusionTally)), None),
    )


def _joined(
    rest: ScoreHistogram | NotEnoughData, own: ScoreHistogram | NotEnoughData, number: int
) -> ScoreHistogram | NotEnoughData:
    if isinstance(rest, NotEnoughData):
        return rest
    return own if isinstance(own, NotEnoughData) else join_own(rest, own, number)


def units_heard(survey: ClassSurvey, tallies: Sequence[PartTally]) -> int:
    """How many units answered anything: each all parts, or each exactly one."""
    heard = [max(tally.reports) for tally in tallies if isinstance(tally, Tally)]
    return sum(heard) if survey.draws_one_part else max(heard, default=0)


def _decoded(
    part: Part, tally: PartTally, units: int, decode_options: DecodeOptions
) -> ScoreHistogram | NotEnoughData:
    if isinstance(tally, NotEnoughData):
        return tally
    histogram = decode(part.survey, tally, decode_options=decode_options)
    if part.client_fraction is None:
        return histogram
    return scaled_up(histogram, units / max(tally.reports))
