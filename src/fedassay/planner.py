"""The choice of a survey's parameters; nothing else in the package chooses them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from fedassay.decode import Readout
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Exact, Unit
from fedassay.survey import Survey


class Privacy(Enum):
    """The paper's three privacy models (`sec:privacymodels`)."""

    SECURE = "secure"


class Preset(Enum):
    """Which choices fill in what the user leaves open."""

    DEFAULT = "default"
    """The best we know."""
    PAPER = "paper"
    """As the paper did it: binary tree of height 10, 100 quantile buckets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a user asks of a survey; None leaves the choice to the planner."""

    privacy: Privacy = Privacy.SECURE
    preset: Preset = Preset.DEFAULT
    height: int | None = None
    fanout: int | None = None
    buckets: int | None = None
    thresholds: tuple[float, ...] = ()
    reference: Examples | FloatArray | None = None
    unit: Unit = Unit()
    minimum_reports: int = 2
    model_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A survey, and how its tally will be read."""

    survey: Survey
    readout: Readout


_PAPER_HEIGHT = 10
_PAPER_BUCKETS = 100
_REFERENCE_CELLS = 2**12


def choose(request: Request) -> Choice:
    """Fill in everything that the request leaves open."""
    _check(request)
    paper = request.preset is Preset.PAPER
    grid = _grid(request)
    if paper or request.height is not None or request.fanout is not None:
        hierarchy = Hierarchy.regular(grid.cells, request.fanout or 2)
    else:
        # Without noise the leaves say it all.
        hierarchy = Hierarchy.flat(grid.cells)
    survey = Survey(
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=(Exact(),) * hierarchy.levels,
        unit=request.unit,
        minimum_reports=request.minimum_reports,
        model_digest=request.model_digest,
    )
    buckets = request.buckets or (_PAPER_BUCKETS if paper else None)
    return Choice(survey, Readout(smooth=not paper, buckets=buckets))


def _grid(request: Request) -> Grid:
    fanout = request.fanout or 2
    if request.preset is Preset.PAPER:
        return Grid.uniform(fanout ** (request.height or _PAPER_HEIGHT))
    reference = request.reference
    if reference is not None:
        cells = fanout**request.height if request.height else _REFERENCE_CELLS
        if isinstance(reference, Examples):
            grid = Grid.warped(reference.scores, cells, labels=reference.labels)
        else:
            grid = Grid.warped(reference, cells)
    elif request.height is not None:
        grid = Grid.uniform(fanout**request.height)
    else:
        grid = Grid.fine()
    return grid.with_edges_at(request.thresholds)


def _check(request: Request) -> None:
    height, fanout = request.height, request.fanout
    if height is not None and not 1 <= height <= 20:
        raise SettingInvalid(f"height must be from 1 to 20; found {height}.")
    if fanout is not None and not 2 <= fanout <= 1024:
        raise SettingInvalid(f"fan-out must be from 2 to 1024; found {fanout}.")
    if fanout is not None and height is None and request.preset is Preset.DEFAULT:
        raise SettingInvalid("a fan-out needs a height: the leaves are fanout ** height.")
    check_buckets(request.buckets)
    if request.preset is Preset.PAPER and request.reference is not None:
        raise SettingInvalid(
            "the paper preset uses a uniform grid; a reference does not go with it. "
            "Drop --reference, or use the default preset."
        )
    check_thresholds(request.thresholds)


def check_buckets(buckets: int | None) -> None:
    """Raise unless a number of buckets, where one is given, is from 1 to 65536."""
    if buckets is not None and not 1 <= buckets <= 2**16:
        raise SettingInvalid(f"buckets must be from 1 to 65536; found {buckets}.")


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Raise unless all thresholds lie in [0, 1]."""
    for threshold in thresholds:
        if not 0.0 <= threshold <= 1.0:
            raise SettingInvalid(f"a threshold must lie in [0, 1]; found {threshold}. Scores do.")
