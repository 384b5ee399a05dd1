"""A question about classes as a file: all parts, as ordinary surveys, and what they are for.

What a stranger wrote is held against what `class_survey` builds: the parts of the design in their
order, one privacy model and unit, and for each part the digest that names what it asks.
"""

import hashlib
from pathlib import Path
from typing import Any

from fedassay.checks import check_model_digest
from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    MOST_CONFUSED,
    ClassSurvey,
    part_digest,
)
from fedassay.classes.encodings import Part, PartKind
from fedassay.classes.rows import MOST_CLASSES, checked_names
from fedassay.errors import FedassayError, FileInvalid, SettingInvalid
from fedassay.files import (
    PUBLIC,
    Fields,
    JsonShape,
    as_path,
    canonical,
    check_format,
    parse_json,
    read_bytes,
    read_object,
    write_whole,
)
from fedassay.nesting import MOST_SMALLEST_CELL
from fedassay.survey_json import survey_from_json

CLASS_SURVEY_FORMAT = "fedassay.class-survey/1"
MAX_CLASS_SURVEY_BYTES = 2**26
_SHAPE = JsonShape(nested=2**17, texts=2**18, items=2**22)
_MAKE = "Make it with fedassay survey new --scores."


def class_survey_json(survey: ClassSurvey) -> dict[str, Any]:
    """The file's content."""
    return {
        "format": CLASS_SURVEY_FORMAT,
        "classes": list(survey.names),
        "design": survey.design.value,
        "smallest_cell": survey.smallest_cell,
        "model_digest": survey.model_digest,
        "parts": [
            {
                "kind": part.kind.value,
                "number": part.number,
                "client_fraction": None
                if part.client_fraction is None
                else str(part.client_fraction),
                "survey": part.survey.to_json(),
            }
            for part in survey.parts
        ],
    }


def class_fingerprint(survey: ClassSurvey) -> bytes:
    """SHA-256 of the canonical content: what a ledger knows the question by."""
    return hashlib.sha256(canonical(class_survey_json(survey))).digest()


def save_class_survey(survey: ClassSurvey, path: str | Path) -> None:
    """Write the file, whole or not at all."""
    write_whole(as_path(path), canonical(class_survey_json(survey)), mode=PUBLIC)


def is_class_survey(path: Path) -> bool:
    """Whether a file asks about classes; whoever reads it says what else is wrong."""
    try:
        content = read_object(path, most=MAX_CLASS_SURVEY_BYTES)
    except FedassayError:
        return False
    return isinstance(content, dict) and content.get("format") == CLASS_SURVEY_FORMAT


def load_class_survey(path: str | Path) -> ClassSurvey:
    """Read a file; its size is checked before it is read."""
    data = read_bytes(as_path(path), most=MAX_CLASS_SURVEY_BYTES)
    _SHAPE.check(data, str(path))
    return class_survey_from_json(parse_json(data, str(path)), where=str(path))


def class_survey_from_json(content: object, *, where: str = "survey") -> ClassSurvey:
    """Rebuild a question about classes from untrusted JSON; anything unknown is refused.

    >>> from fedassay.classes.design import design_classes
    >>> from fedassay.planning.request import SurveyRequest
    >>> survey = design_classes(SurveyRequest(), ("a", "b", "c"))
    >>> class_survey_from_json(class_survey_json(survey)) == survey
    True
    """
    fields = Fields(check_format(content, CLASS_SURVEY_FORMAT, where), where)
    fields.only("format", "classes", "design", "smallest_cell", "model_digest", "parts")
    digest = fields.get("model_digest")
    listed = fields.get("parts")
    if not isinstance(listed, list) or not 4 <= len(listed) <= MOST_CLASSES + 3:
        raise FileInvalid(f'{where}: "parts" lists the surveys of all classes. {_MAKE}')
    try:
        names = checked_names(fields.texts("classes", MOST_CLASSES))
        if digest is not None:
            check_model_digest(digest)
        survey = ClassSurvey(
            names=names,
            design=fields.one_of(ClassDesign, "design"),
            parts=tuple(_part(Fields(each, where), where) for each in listed),
            smallest_cell=fields.integer("smallest_cell", 0, MOST_SMALLEST_CELL),
            model_digest=digest,
        )
    except SettingInvalid as error:
        raise FileInvalid(f"{where}: {error}") from error
    _check_parts(survey, where)
    if canonical(class_survey_json(survey)) != canonical(content):
        raise FileInvalid(f"{where}: a survey says everything in one way; this one not. {_MAKE}")
    return survey


def _part(fields: Fields, where: str) -> Part:
    fields.only("kind", "number", "client_fraction", "survey")
    share = fields.get("client_fraction")
    return Part(
        kind=fields.one_of(PartKind, "kind"),
        number=fields.integer("number", 0, MOST_CLASSES - 1),
        client_fraction=None if share is None else fields.fraction("client_fraction"),
        survey=survey_from_json(fields.get("survey"), where=where),
    )


def _expected(survey: ClassSurvey) -> list[tuple[PartKind, int, str]]:
    """The parts that the design has, each with what its digest says of it."""
    parts = [(PartKind.CLASS, at, f"class {name}") for at, name in enumerate(survey.names)]
    if survey.design is ClassDesign.OWN:
        parts.append((PartKind.OWN, 0, "own"))
    parts.append((PartKind.TOP, 0, "top"))
    if len(survey.names) <= MOST_CONFUSED:
        parts.append((PartKind.CONFUSION, 0, "confusion"))
    return parts


def _check_parts(survey: ClassSurvey, where: str) -> None:
    """Raise unless the parts are those of the design, and alike in what they promise whom."""
    expected = _expected(survey)
    if [(part.kind, part.number) for part in survey.parts] != [each[:2] for each in expected]:
        raise FileInvalid(f"{where}: the parts are not those of its design and classes. {_MAKE}")
    first, classes = survey.parts[0].survey, len(survey.names)
    cells = {
        PartKind.CLASS: first.grid.cells,
        PartKind.OWN: classes * first.grid.cells,
        PartKind.CONFUSION: classes**2,
    }
    for part, (kind, _, about) in zip(survey.parts, expected, strict=True):
        asked = part.survey
        smallest = 0 if kind is PartKind.CONFUSION else survey.smallest_cell
        alike = (
            asked.privacy is first.privacy
            and asked.unit == first.unit
            and asked.colluders == first.colluders
            and asked.smallest_cell == smallest
            and asked.model_digest == part_digest(survey.model_digest, about)
            and asked.hierarchy.levels == 1
            and asked.step is None
            and asked.moments is None
            and asked.groups is None
            and asked.pair is None
            and asked.grid.cells == cells.get(kind, asked.grid.cells)
        )
        if not alike:
            raise FileInvalid(
                f"{where}: every part has the same privacy, unit and smallest cell, and the digest "
                f"of what it asks; that about {about[:60]!r} does not. {_MAKE}"
            )
