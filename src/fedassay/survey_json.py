"""Surveys read from JSON that a stranger may have written."""

from pathlib import Path

from fedassay.cut_levels import AnyLevels, levels_from_json
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import (
    Fields,
    JsonShape,
    canonical,
    check_format,
    parse_json,
    read_bytes,
)
from fedassay.group_names import GroupNames
from fedassay.hierarchy import MAX_LEVELS
from fedassay.level_policy import EveryLevel, LevelPolicy, OneLevel
from fedassay.mechanisms import (
    MECHANISMS,
    AnyMechanism,
    Keep,
    LevelSetting,
    Privacy,
    Unit,
    UnitKind,
)
from fedassay.mechanisms.law import MAX_EXAMPLES
from fedassay.mechanisms.shuffled_promise import ShuffledPromise
from fedassay.nesting import MOST_SMALLEST_CELL
from fedassay.pair_grid import grid_from_json
from fedassay.survey import (
    MAX_CLIENTS,
    OPTIONAL_PARTS,
    SMALLEST_CELL_FORMAT,
    SURVEY_FORMATS,
    Survey,
)
from fedassay.survey_moments import SiteMoments
from fedassay.survey_steps import step_from_json

MAX_SURVEY_BYTES = 4 * 2**20
MAX_SURVEY_SHAPE = JsonShape(nested=1024, texts=4096, items=2**18)
"""A survey lists at most 255 levels, and as many edges as its bytes hold."""


def load_survey(path: Path) -> Survey:
    """Read a survey file; its size is checked before it is read.

    >>> load_survey(Path("no-such-survey.json"))
    Traceback (most recent call last):
    ...
    fedassay.errors.FileInvalid: no-such-survey.json: cannot be read (No such file...
    """
    return survey_from_bytes(read_bytes(path, most=MAX_SURVEY_BYTES), where=str(path))


def survey_from_bytes(data: bytes, *, where: str = "survey") -> Survey:
    """Read the bytes of a survey; size and shape are checked before anything is built of them.

    >>> survey_from_bytes(b"[" * 2000)
    Traceback (most recent call last):
    ...
    fedassay.errors.FileInvalid: survey: such files have at most 1,024 lists and objects...
    """
    if len(data) > MAX_SURVEY_BYTES:
        raise FileInvalid(
            f"{where}: a survey has at most {MAX_SURVEY_BYTES:,} bytes; found {len(data):,}."
        )
    MAX_SURVEY_SHAPE.check(data, where)
    return survey_from_json(parse_json(data, where), where=where)


def survey_from_json(content: object, *, where: str = "survey") -> Survey:
    """Rebuild a survey from untrusted JSON; anything unknown is refused.

    What is accepted says the same again when written, to the last byte, so that a
    fingerprint computed from a file in any language is the survey's.

    >>> from fedassay.grid import Grid
    >>> from fedassay.hierarchy import Hierarchy
    >>> from fedassay.mechanisms import Exact
    >>> survey = Survey(
    ...     privacy=Privacy.SECURE, grid=Grid.uniform(4), hierarchy=Hierarchy.flat(4),
    ...     mechanisms=(Exact(),), minimum_reports=10,
    ... )
    >>> survey_from_json(survey.to_json()) == survey
    True
    """
    fields = Fields(check_format(content, SURVEY_FORMATS, where), where)
    # Each version has its fields: a smallest cell is what the newer one says.
    merges = fields.get("format") == SMALLEST_CELL_FORMAT
    fields.only(
        "format", "privacy", "grid", "hierarchy", "level_policy", "mechanisms", "unit",
        "minimum_reports", "colluders", "allow_empty", "model_digest",
        *(name for name in ("sum_only", *OPTIONAL_PARTS) if fields.has(name)),
        *(["smallest_cell"] if merges else []),
    )  # fmt: skip
    try:
        survey = _survey(fields)
    except SettingInvalid as error:
        raise FileInvalid(f"{where}: {error}") from error
    if canonical(survey.to_json()) != canonical(content):
        raise FileInvalid(
            f"{where}: a survey says everything in one way (fractions in lowest terms, edges in "
            "rising order, each once); this one does not. Make it with fedassay survey new."
        )
    return survey


def _survey(fields: Fields) -> Survey:
    grid = grid_from_json(fields.inside("grid"))
    groups = GroupNames.from_json(fields.inside("groups")) if fields.has("groups") else None
    leaves = grid.cells * (1 if groups is None else len(groups.parts))
    hierarchy = levels_from_json(fields.inside("hierarchy"), leaves)
    unit = _unit(fields.inside("unit"))
    minimum = fields.integer("minimum_reports", 1, MAX_CLIENTS)
    colluders = fields.integer("colluders", 0, minimum - 1)
    allow_empty = fields.boolean("allow_empty")
    privacy = fields.one_of(Privacy, "privacy")
    settings = [
        LevelSetting(
            cells,
            unit.sensitivity * hierarchy.largest_weight(level),
            privacy.noise_shares(minimum - colluders),
            allow_empty,
        )
        for level, cells in enumerate(hierarchy.cells_per_level)
    ]
    return Survey(
        privacy=privacy,
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=_mechanisms(fields, hierarchy, settings),
        level_policy=_level_policy(fields.inside("level_policy")),
        unit=unit,
        minimum_reports=minimum,
        colluders=colluders,
        allow_empty=allow_empty,
        model_digest=None if fields.get("model_digest") is None else fields.text("model_digest"),
        smallest_cell=fields.integer("smallest_cell", 2, MOST_SMALLEST_CELL)
        if fields.get("format") == SMALLEST_CELL_FORMAT
        else 0,
        sum_only=fields.boolean("sum_only") if fields.has("sum_only") else False,
        step=step_from_json(fields.inside("step")) if fields.has("step") else None,
        moments=SiteMoments.from_json(fields.inside("moments")) if fields.has("moments") else None,
        groups=groups,
        shuffled=ShuffledPromise.from_json(fields.inside("shuffled"))
        if fields.has("shuffled")
        else None,
    )


def _mechanisms(
    fields: Fields, hierarchy: AnyLevels, settings: list[LevelSetting]
) -> tuple[AnyMechanism, ...]:
    listed = fields.get("mechanisms")
    if not isinstance(listed, list) or len(listed) != hierarchy.levels:
        raise FileInvalid('"mechanisms" must list one mechanism per level.')
    return tuple(
        _mechanism(Fields(item, "mechanism"), setting)
        for item, setting in zip(listed, settings, strict=True)
    )


def _mechanism(fields: Fields, setting: LevelSetting) -> AnyMechanism:
    kind = fields.text("kind")
    if kind not in MECHANISMS:
        raise FileInvalid(
            f"mechanisms are {', '.join(MECHANISMS)}; found {kind[:40]!r}. "
            "Use the fedassay version that wrote the survey."
        )
    return MECHANISMS[kind].from_json(fields, setting)


def _level_policy(fields: Fields) -> LevelPolicy:
    kind = fields.text("kind")
    if kind == "every":
        fields.only("kind")
        return EveryLevel()
    if kind == "one":
        fields.only("kind", "client_fractions", "by_hash")
        fractions = tuple(fields.fractions("client_fractions", MAX_LEVELS))
        return OneLevel(fractions, fields.boolean("by_hash"))
    raise FileInvalid(f"a client reports on every level or on one; found {kind[:40]!r}.")


def _unit(fields: Fields) -> Unit:
    kind = fields.one_of(UnitKind, "kind")
    is_patient = kind is UnitKind.PATIENT
    fields.only("kind", "max_examples", *(["keep"] if is_patient else []))
    keep = fields.one_of(Keep, "keep") if is_patient else Keep.RANDOM
    return Unit(kind, fields.integer("max_examples", 1, MAX_EXAMPLES), keep)
