"""The calibrator: a map from scores to probabilities that any service can apply."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.checks import require_member, require_number, require_type
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.examples import FloatArray, checked_scores
from fedassay.files import Fields, as_path, check_format, read_json, write_json
from fedassay.presentation import html_text

CALIBRATOR_FORMAT = "fedassay.calibrator/1"
MAX_EDGES = 2**17


class Method(Enum):
    """How a calibrator was fitted."""

    NONE = "none"
    """The score as it is: calibrating was expected to do harm."""
    BINNING = "binning"
    BBQ = "bbq"
    ISOTONIC = "isotonic"
    SIGMOID = "sigmoid"
    BETA = "beta"
    TEMPERATURE = "temperature"
    SMOOTH = "smooth"


class Interpolation(Enum):
    """What lies between edges."""

    STEP = "step"
    """A score in (edges[i], edges[i + 1]] becomes values[i]; 0 belongs to the first."""
    LINEAR = "linear"
    """Straight lines between the points (edges[i], values[i]); constant beyond them."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Calibrator:
    """A map from scores in [0, 1] to probabilities, as edges and values.

    >>> twice = Calibrator(Method.ISOTONIC, np.array([0.0, 0.5]), np.array([0.0, 1.0]))
    >>> twice.predict([0.25, 0.75])
    array([0.5, 1. ])
    >>> print(twice)
    isotonic calibrator: 0.5 becomes 1.000, linear over 2 points
    """

    method: Method
    edges: FloatArray
    values: FloatArray
    interpolation: Interpolation = Interpolation.LINEAR
    _: KW_ONLY
    parameters: Mapping[str, float] = field(default_factory=dict)
    """What a parametric fit found; the map is already in the edges and values."""
    reason: str = ""
    """Why this method was chosen, when it was chosen automatically."""

    def __post_init__(self) -> None:
        _check(self)
        for name in ("edges", "values"):
            frozen = getattr(self, name).view()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    def __str__(self) -> str:
        if self.method is Method.NONE:
            return "no calibrator: scores stay as they are"
        middle = float(self.predict([0.5])[0])
        return (
            f"{self.method.value} calibrator: 0.5 becomes {middle:.3f}, "
            f"{self.interpolation.value} over {len(self.values):,} points"
        )

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        return html_text(f"{self}. {self.reason}" if self.reason else str(self))

    @classmethod
    def identity(cls, reason: str = "") -> "Calibrator":
        """The map that leaves scores alone."""
        ends = np.array([0.0, 1.0])
        return cls(Method.NONE, ends, ends.copy(), reason=reason)

    @property
    def is_monotone(self) -> bool:
        """Whether a higher score never becomes a lower probability."""
        return bool((np.diff(self.values) >= 0.0).all())

    def predict(self, scores: npt.ArrayLike) -> FloatArray:
        """Calibrated probabilities; scores outside [0, 1] raise `ScoreOutOfRange`."""
        checked = checked_scores(scores)
        if self.interpolation is Interpolation.LINEAR:
            return np.interp(checked, self.edges, self.values)
        place = np.searchsorted(self.edges[1:-1], checked, side="left")
        probabilities: FloatArray = self.values[place]
        return probabilities

    def predict_proba(self, scores: npt.ArrayLike) -> FloatArray:
        """Both classes' probabilities, row x class, as scikit-learn has them."""
        positive = self.predict(scores)
        return np.column_stack([1.0 - positive, positive])

    def require_monotone(self) -> "Calibrator":
        """Return self, or raise when ranks would change."""
        if self.is_monotone:
            return self
        raise SettingInvalid(
            f"a monotone map was asked for; the {self.method.value} calibrator falls at "
            f"{int((np.diff(self.values) < 0.0).sum())} places. Use a method whose maps never "
            "fall, such as smooth or isotonic."
        )

    def to_json(self) -> dict[str, Any]:
        """The file's content."""
        return {
            "format": CALIBRATOR_FORMAT,
            "method": self.method.value,
            "interpolation": self.interpolation.value,
            "monotone": self.is_monotone,
            "edges": self.edges.tolist(),
            "values": self.values.tolist(),
            "parameters": {name: float(value) for name, value in self.parameters.items()},
            "reason": self.reason,
        }

    def save(self, path: str | Path) -> None:
        """Write the calibrator file, whole or not at all."""
        write_json(as_path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "Calibrator":
        """Read a calibrator file."""
        return cls.from_json(read_json(as_path(path), CALIBRATOR_FORMAT), where=str(path))

    @classmethod
    def from_json(cls, content: object, *, where: str = "calibrator") -> "Calibrator":
        """Check and read a file's content."""
        fields = Fields(check_format(content, CALIBRATOR_FORMAT, where), where)
        fields.only(
            "format",
            "method",
            "interpolation",
            "monotone",
            "edges",
            "values",
            "parameters",
            "reason",
        )
        given = fields.get("parameters")
        inner = Fields(given, f"{where}, parameters")
        is_monotone = fields.boolean("monotone")
        try:
            calibrator = cls(
                method=Method(fields.text("method")),
                edges=np.array(fields.numbers("edges", MAX_EDGES)),
                values=np.array(fields.numbers("values", MAX_EDGES)),
                interpolation=Interpolation(fields.text("interpolation")),
                parameters={name: inner.number(name) for name in given},
                reason=fields.text("reason"),
            )
        except ValueError as error:
            raise FileInvalid(f"{where}: {error}") from error
        if is_monotone and not calibrator.is_monotone:
            raise FileInvalid(
                f"{where}: the file calls its map monotone, but its values fall. "
                "Copy it again from its source."
            )
        return calibrator


def _check(calibrator: Calibrator) -> None:
    """Edges rise within [0, 1], values are probabilities, and their numbers fit."""
    door = "result.calibrate(method=...)"
    require_member(calibrator.method, Method, "a calibrator's method", door=door)
    require_member(calibrator.interpolation, Interpolation, "interpolation", door=door)
    require_type(calibrator.parameters, Mapping, "a calibrator's parameters", "Leave them out.")
    for name, number in calibrator.parameters.items():
        require_number(number, f"a calibrator's parameter {name}")
    require_type(calibrator.reason, str, "a calibrator's reason", "Say it in words.")
    for name in ("edges", "values"):
        array = getattr(calibrator, name)
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.ndim != 1:
            raise SettingInvalid(
                f"a calibrator's {name} must be one row of float64 in a numpy array; found "
                f"{type(array).__name__}. Use np.asarray(..., dtype=float)."
            )
    edges, values = calibrator.edges, calibrator.values
    is_step = calibrator.interpolation is Interpolation.STEP
    if len(edges) < 2 or len(values) != len(edges) - is_step:
        raise SettingInvalid(
            f"a {calibrator.interpolation.value} map with {len(edges)} edges needs "
            f"{max(len(edges) - is_step, 1)} values, and at least 2 edges; found {len(values)}."
        )
    if not ((np.diff(edges) > 0.0).all() and edges[0] >= 0.0 and edges[-1] <= 1.0):
        raise SettingInvalid(
            "a calibrator's edges must rise strictly within [0, 1]; these do not. "
            "Sort them and drop repeats."
        )
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise SettingInvalid(
            "a calibrator's values must lie in [0, 1]; some do not. They are probabilities."
        )
