"""What a site agrees to, whoever asks: its `site.toml`, in which nothing is without a limit."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from fedassay.client import ClientPolicy
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import Fields, check_format
from fedassay.ledger import Part
from fedassay.survey import MAX_CLIENTS

SITE_FORMAT = "fedassay.site/2"
_FORMATS = ("fedassay.site/1", SITE_FORMAT)
AGREEMENT_FILE = "site.toml"
_MOST_BYTES = 2**20
_MOST_DIGESTS = 10_000
_MOST_REASON = 400
_KEYS = (
    "format", "data-folder", "data-id", "largest-epsilon", "budget", "reason", "exact-sums",
    "smallest-cell", "smallest-cohort", "colluders", "model-digests", "again", "trusted-server",
    "identity", "roster",
)  # fmt: skip
LARGEST_EPSILON = Fraction(1)
"""What a site spends on one survey, per unit and under every privacy model, unless it says why."""
BUDGET = Fraction(5)
"""What a site spends on all surveys together, unless it says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What a site agrees to, whoever asks: its `site.toml`."""

    data_folder: Path
    """Tables outside this folder are never read."""
    data_id: str
    """Under which name the ledger charges this site's data."""
    largest_epsilon: Fraction
    """The most that one survey may spend."""
    budget: Fraction
    """The most that all surveys together may spend; the ledger has no larger one."""
    reason: str
    """Why this site gives more than `LARGEST_EPSILON` or `BUDGET`; empty where it does not."""
    exact_sums: bool
    """Whether sums without noise may be revealed."""
    smallest_cell: int
    """Of sums without noise, the smallest count that may be published; 0 or 1 for any."""
    smallest_cohort: int
    colluders: int | None
    """How many sites may work together with a server; None for a third of the roster."""
    model_digests: frozenset[str]
    again: bool
    """Whether a survey that was charged before may be answered, and charged, once more."""
    trusted_server: bool
    """Whether this site's own report may be shown to the server; for development only."""
    identity: Path | None
    roster: Path | None

    def __post_init__(self) -> None:
        # A policy says which epsilons there are.
        ClientPolicy(largest_epsilon=self.largest_epsilon)
        if self.budget <= 0:
            raise SettingInvalid(f"a site's budget must be above 0; found {self.budget}.")
        check_reason(self.largest_epsilon, self.budget, self.reason)

    @classmethod
    def load(cls, path: Path) -> "Agreement":
        """Read `site.toml`; anything unknown is refused, and so is what has no limit."""
        content = check_format(read_toml(path), _FORMATS, str(path))
        unknown = set(content) - set(_KEYS)
        if unknown:
            raise FileInvalid(
                f"{path}: unknown setting {sorted(unknown)[0][:40]!r}. Remove it, or use the "
                "fedassay version that wrote the file."
            )
        for name, default in (("largest-epsilon", LARGEST_EPSILON), ("budget", BUDGET)):
            if name not in content:
                raise FileInvalid(
                    f"{path}: a site without a limit answers nothing; {name} is missing. Add "
                    f'{name} = "{default}", or another number with the reason for it.'
                )
        fields = Fields(content, str(path))
        try:
            return cls(
                data_folder=path.parent / fields.text("data-folder"),
                data_id=Part(fields.text("data-id")).data,
                largest_epsilon=fields.fraction("largest-epsilon"),
                budget=fields.fraction("budget"),
                reason=fields.text("reason").strip() if "reason" in content else "",
                exact_sums=_flag(fields, content, "exact-sums"),
                smallest_cell=fields.integer("smallest-cell", 0, MAX_CLIENTS)
                if "smallest-cell" in content
                else ClientPolicy().smallest_cell,
                smallest_cohort=fields.integer("smallest-cohort", 1, MAX_CLIENTS),
                colluders=fields.integer("colluders", 0, MAX_CLIENTS)
                if "colluders" in content
                else None,
                model_digests=_digests(content.get("model-digests", []), path),
                again=_flag(fields, content, "again"),
                trusted_server=_flag(fields, content, "trusted-server"),
                identity=_beside(path, fields, content, "identity"),
                roster=_beside(path, fields, content, "roster"),
            )
        except SettingInvalid as error:
            raise FileInvalid(f"{path}: {error}") from error


def check_reason(largest_epsilon: Fraction, budget: Fraction, reason: str) -> None:
    """Raise unless limits above the defaults come with a reason, in one line."""
    more = largest_epsilon > LARGEST_EPSILON or budget > BUDGET
    if more and not reason:
        raise SettingInvalid(
            f"a site spends at most epsilon {LARGEST_EPSILON} on one survey and {BUDGET} on all, "
            f"or it says why not; found {largest_epsilon} and {budget} without a reason. "
            "Lower them, or give the reason (--reason TEXT, reason in site.toml)."
        )
    if len(reason) > _MOST_REASON or not reason.isprintable():
        raise SettingInvalid(
            f"a reason is one line of at most {_MOST_REASON} printable characters; this one is not."
        )


def default_colluders(sites: int) -> int:
    """How many of so many sites may work together with a server: a third, at least 1."""
    return max(1, sites // 3)


def read_toml(path: Path) -> object:
    """The content of a site's file, if it is one."""
    try:
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise FileInvalid(
            f"{path}: a site answers nothing without this file. Check the path; make a site's "
            f"folder with: fedassay federation site {path.parent}"
        ) from error
    except OSError as error:
        raise FileInvalid(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    if len(content) > _MOST_BYTES:
        raise FileInvalid(f"{path}: such files are at most {_MOST_BYTES} bytes. Shorten it.")
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise FileInvalid(f"{path}: not a TOML file. Correct it, or make a new one.") from error


def _flag(fields: Fields, content: Mapping[str, object], name: str) -> bool:
    return name in content and fields.boolean(name)


def _beside(path: Path, fields: Fields, content: Mapping[str, object], name: str) -> Path | None:
    return path.parent / fields.text(name) if name in content else None


def _digests(raw: object, path: Path) -> frozenset[str]:
    if (
        not isinstance(raw, list)
        or len(raw) > _MOST_DIGESTS
        or not all(isinstance(item, str) and len(item) == 64 for item in raw)
    ):
        raise FileInvalid(
            f"{path}: model-digests is a list of SHA-256 digests of 64 hexadecimal digits. "
            "Make one with: sha256sum model.bin"
        )
    return frozenset(raw)
