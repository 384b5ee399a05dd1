"""How a question about classes is asked: ordinary surveys, and what they cost together.

Every example is in all K one-vs-rest histograms, so that K histograms cost K times what one does,
unless epsilon or clients are shared out. There are three ways to do it (`ClassDesign`):

- every: all K parts, epsilon / K each;
- drawn: each unit answers one part, drawn without looking at its data, with all of epsilon;
- own: an example is positive for one class only, so that the positives of all classes stand side
  by side in one part, which costs as much as one class; negatives, which are many more, are asked
  for in K parts, by either of the ways above.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from math import floor, sqrt

from fedassay.classes.class_design import ClassDesign
from fedassay.classes.encodings import Part, PartKind, own_grid
from fedassay.errors import SettingInvalid
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Guarantee, Privacy
from fedassay.planning.build import build_survey
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.survey import Survey

MOST_CONFUSED = 255
"""Classes of which a confusion matrix is asked for: its pairs are cells of one grid."""
TABLES, TOP, CONFUSION = Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)
"""What histograms, the top label and the confusion matrix get of epsilon, or of the clients."""
OWN_BUDGET = Fraction(1, 2)
"""What positives get of the histograms' epsilon: their noise and that of negatives weigh alike."""
OWN_CLIENTS = Fraction(2, 3)
"""What positives get of the histograms' clients: negatives are K - 1 times as many."""
# A part that is drawn may be heard by fewer than its share: six standard deviations.
_LUCK = 6.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClassSurvey:
    """One question about K classes: ordinary surveys, and what they cost together.

    Guarantee: a unit's rows are in every part that it answers. Where all units answer all parts
    the parts' epsilons add up; where each answers exactly one, drawn without looking at its data,
    the largest holds. Neighbours, unit and trust are those of the parts.
    """

    names: tuple[str, ...]
    design: ClassDesign
    parts: tuple[Part, ...]
    smallest_cell: int = 0
    model_digest: str | None = None
    """Of the model that all parts ask about; the parts' own digests name what each asks of it."""

    def __post_init__(self) -> None:
        fractions = [part.client_fraction for part in self.parts]
        drawn = [fraction for fraction in fractions if fraction is not None]
        if drawn and (len(drawn) < len(fractions) or sum(drawn) != 1 or min(drawn) <= 0):
            raise SettingInvalid(
                "either every unit answers all parts, or each exactly one: shares of clients that "
                "are positive and add up to 1; found others. Give every part its share."
            )

    def __repr__(self) -> str:
        return f"<ClassSurvey: {len(self.names)} classes, {self.design.value}>"

    @property
    def privacy(self) -> Privacy:
        """The privacy model of all parts."""
        return self.parts[0].survey.privacy

    @property
    def draws_one_part(self) -> bool:
        """Whether each unit answers exactly one part."""
        return self.parts[0].client_fraction is not None

    @property
    def epsilon(self) -> Fraction | None:
        """What one unit spends on all parts together; None where nothing is randomised."""
        spent = [part.survey.epsilon for part in self.parts]
        known = [epsilon for epsilon in spent if epsilon is not None]
        if len(known) < len(spent):
            return None
        return max(known) if self.draws_one_part else sum(known, Fraction(0))

    @property
    def guarantee(self) -> Guarantee:
        """What all parts promise together."""
        worst = max((part.survey for part in self.parts), key=lambda survey: survey.epsilon or 0)
        known = [part.survey.own_participant_epsilon for part in self.parts]
        told = [each for each in known if each is not None]
        towards = None
        if told:
            towards = max(told) if self.draws_one_part else sum(told)
        return replace(
            worst.guarantee,
            epsilon=self.epsilon,
            participant_epsilon=towards,
            smallest_cell=self.smallest_cell,
        )


def class_survey(
    request: SurveyRequest, names: tuple[str, ...], design: ClassDesign, grid: Grid
) -> ClassSurvey:
    """The parts of a design over one grid, which spend exactly the request's epsilon.

    >>> from fedassay.mechanisms import Privacy
    >>> request = SurveyRequest(
    ...     privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=1000, dropouts=Fraction(0)
    ... )
    >>> survey = class_survey(request, ("a", "b", "c"), ClassDesign.EVERY, Grid.uniform(8))
    >>> len(survey.parts), survey.parts[0].survey.epsilon, survey.epsilon
    (5, Fraction(1, 5), Fraction(1, 1))
    """
    drawn = draws_one_part(request, design)
    parts = [
        *table_parts(request, names, design, grid, range(len(names))),
        build_part(request, PartKind.TOP, grid, share=TOP, drawn=drawn, about="top"),
    ]
    if len(names) <= MOST_CONFUSED:
        pairs = Grid.uniform(len(names) ** 2)
        parts.append(
            build_part(
                request,
                PartKind.CONFUSION,
                pairs,
                share=CONFUSION,
                drawn=drawn,
                about="confusion",
            )
        )
    return ClassSurvey(
        names=names, design=design, parts=tuple(parts), model_digest=request.model_digest
    )


def exact_survey(request: SurveyRequest, names: tuple[str, ...]) -> ClassSurvey:
    """All parts as exact sums: they cost no epsilon, and so all are asked of everybody.

    >>> exact_survey(SurveyRequest(), ("a", "b", "c")).epsilon is None
    True
    """
    parts = [
        Part(kind=PartKind.CLASS, number=number, survey=_exact_part(request, f"class {name}"))
        for number, name in enumerate(names)
    ]
    parts.append(Part(kind=PartKind.TOP, survey=_exact_part(request, "top")))
    if len(names) <= MOST_CONFUSED:
        # Its cells are no scores, and are merged by a rule of their own (`confusion_matrix`).
        grid = Grid.uniform(len(names) ** 2)
        asked = replace(
            request,
            smallest_cell=0,
            model_digest=part_digest(request.model_digest, "confusion"),
            thresholds=(),
        )
        survey = build_survey(asked, grid, Hierarchy.flat(grid.cells))
        parts.append(Part(kind=PartKind.CONFUSION, survey=survey))
    return ClassSurvey(
        names=names,
        design=ClassDesign.EVERY,
        parts=tuple(parts),
        smallest_cell=request.smallest,
        model_digest=request.model_digest,
    )


def _exact_part(request: SurveyRequest, part: str) -> Survey:
    asked = replace(
        request,
        thresholds=(),
        steps=Steps.ONE,
        model_digest=part_digest(request.model_digest, part),
    )
    return design_survey(asked).survey


def part_digest(model_digest: str | None, part: str) -> str:
    """What a part's survey is about: the model, and what is asked of it.

    Two parts of one question so have two fingerprints, and no report counts in the wrong one.

    >>> len(part_digest(None, "class a"))
    64
    """
    return sha256(f"{model_digest or ''} {part}".encode()).hexdigest()


def table_parts(
    request: SurveyRequest,
    names: tuple[str, ...],
    design: ClassDesign,
    grid: Grid,
    numbers: Iterable[int],
    *,
    share: Fraction | None = None,
) -> tuple[Part, ...]:
    """The parts that histograms come from: of these classes, and of all positives.

    They get the usual share of epsilon, or of the units, beside other parts, or this one.

    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> parts = table_parts(request, ("a", "b"), ClassDesign.DRAWN, Grid.uniform(8), (0, 1))
    >>> [str(part.client_fraction) for part in parts]
    ['3/10', '3/10']
    """
    whole = _tables_share(names) if share is None else share
    own_share = Fraction(0)
    if design is ClassDesign.OWN:
        own_share = OWN_CLIENTS if request.privacy.is_local else OWN_BUDGET
    drawn = draws_one_part(request, design)
    parts = [
        build_part(
            request,
            PartKind.CLASS,
            grid,
            share=whole / len(names) * (1 - own_share),
            drawn=drawn,
            number=number,
            about=f"class {names[number]}",
        )
        for number in numbers
    ]
    if own_share:
        beside, own = own_grid(grid, len(names)), whole * own_share
        parts.append(build_part(request, PartKind.OWN, beside, share=own, drawn=drawn, about="own"))
    return tuple(parts)


def draws_one_part(request: SurveyRequest, design: ClassDesign) -> bool:
    """Whether each unit answers one part: always so where each report bears the whole noise.

    >>> draws_one_part(SurveyRequest(privacy=Privacy.LOCAL), ClassDesign.OWN)
    True
    """
    match design:
        case ClassDesign.EVERY:
            return False
        case ClassDesign.DRAWN:
            return True
        case ClassDesign.OWN:
            return request.privacy.is_local


def _tables_share(names: tuple[str, ...]) -> Fraction:
    """Without a confusion matrix its share goes to the histograms."""
    return TABLES if len(names) <= MOST_CONFUSED else TABLES + CONFUSION


def build_part(
    request: SurveyRequest,
    kind: PartKind,
    grid: Grid,
    *,
    share: Fraction,
    drawn: bool,
    about: str,
    number: int = 0,
) -> Part:
    """A part that gets this share: of the units, each with all of epsilon, or of epsilon.

    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> part = build_part(
    ...     request, PartKind.TOP, Grid.uniform(8), share=Fraction(1, 5), drawn=False, about="top"
    ... )
    >>> part.survey.epsilon, part.client_fraction
    (Fraction(1, 5), None)
    """
    if request.privacy is Privacy.SHUFFLED:
        raise SettingInvalid(
            "the parts of a survey of several classes are answered one by one, and a shuffler's "
            "crowd is that of one survey; found shuffled privacy. Choose another model."
        )
    epsilon = request.epsilon or (Fraction(1) if request.privacy.spends_epsilon else None)
    asked = replace(
        request,
        epsilon=epsilon if drawn or epsilon is None else epsilon * share,
        model_digest=part_digest(request.model_digest, about),
        thresholds=(),
        steps=Steps.ONE,
    )
    if drawn and request.clients is not None:
        heard = float(request.fewest_reports * share)
        fewest = max(2 + request.colluders, floor(heard - _LUCK * sqrt(heard)))
        asked = replace(
            asked,
            clients=max(floor(request.clients * share), 2),
            minimum_reports=fewest if request.privacy.shares_noise else None,
        )
    survey = build_survey(asked, grid, Hierarchy.flat(grid.cells))
    return Part(kind=kind, survey=survey, number=number, client_fraction=share if drawn else None)
