"""A site: its table, and what it agrees to; everything a survey must pass before it is answered."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from fedassay.client import ClientPolicy
from fedassay.errors import FileInvalid, SettingInvalid, SurveyRefused
from fedassay.examples import IntArray
from fedassay.files import Fields, check_format
from fedassay.ledger import Ledger, LedgerAccount, Part
from fedassay.secagg.identity import Identity, Roster
from fedassay.survey import MAX_CLIENTS, Survey
from fedassay.tables.reading import Columns, count_file

SITE_FORMAT = "fedassay.site/1"
AGREEMENT_FILE = "site.toml"
LEDGER_FILE = "ledger.db"
ROUNDS_FOLDER = "rounds"
_VIRTUAL = {"partition-id", "num-partitions"}
_MOST_BYTES = 2**20
_MOST_DIGESTS = 10_000
_KEYS = (
    "format", "data-folder", "data-id", "largest-epsilon", "exact-sums", "smallest-cohort",
    "model-digests", "again", "trusted-server", "identity", "roster",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a site agrees to, whoever asks: its `site.toml`."""

    data_folder: Path
    """Tables outside this folder are never read."""
    data_id: str
    """Under which name the ledger charges this site's data."""
    largest_epsilon: Fraction | None
    """The most that one survey may spend; None for no limit."""
    exact_sums: bool
    """Whether sums without noise may be revealed."""
    smallest_cohort: int
    model_digests: frozenset[str]
    again: bool
    """Whether a survey that was charged before may be answered, and charged, once more."""
    trusted_server: bool
    """Whether this site's own report may be shown to the server; for development only."""
    identity: Path | None
    roster: Path | None

    @classmethod
    def load(cls, path: Path) -> "Agreement":
        """Read `site.toml`; anything unknown is refused."""
        content = check_format(_read_toml(path), SITE_FORMAT, str(path))
        unknown = set(content) - set(_KEYS)
        if unknown:
            raise FileInvalid(
                f"{path}: unknown setting {sorted(unknown)[0][:40]!r}. Remove it, or use the "
                "fedassay version that wrote the file."
            )
        fields = Fields(content, str(path))
        epsilon = content.get("largest-epsilon")
        try:
            return cls(
                data_folder=path.parent / fields.text("data-folder"),
                data_id=Part(fields.text("data-id")).data,
                largest_epsilon=None if epsilon is None else fields.fraction("largest-epsilon"),
                exact_sums=_flag(fields, content, "exact-sums"),
                smallest_cohort=fields.integer("smallest-cohort", 1, MAX_CLIENTS),
                model_digests=_digests(content.get("model-digests", []), path),
                again=_flag(fields, content, "again"),
                trusted_server=_flag(fields, content, "trusted-server"),
                identity=_beside(path, fields, content, "identity"),
                roster=_beside(path, fields, content, "roster"),
            )
        except SettingInvalid as error:
            raise FileInvalid(f"{path}: {error}") from error

    def policy(self, survey: Survey) -> ClientPolicy:
        """The client's policy for a survey; raises `SurveyRefused` for exact sums not allowed."""
        if survey.epsilon is None:
            if not self.exact_sums:
                raise SurveyRefused(
                    "this site reveals no sum without noise; the survey asks for exact sums. "
                    "Choose distributed or local privacy, or the site sets exact-sums = true."
                )
            return ClientPolicy(self.smallest_cohort, None, self.model_digests)
        # A locally private report protects itself in any crowd.
        cohort = 1 if survey.is_local else self.smallest_cohort
        return ClientPolicy(cohort, self.largest_epsilon, self.model_digests)


@dataclass(frozen=True, slots=True)
class Site:
    """One site of a federation, as its node configuration names it."""

    data: Path
    columns: Columns
    where: Path
    agreement: Agreement

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> "Site":
        """Read a SuperNode's configuration: `data`, `score`, `label` and `where`."""
        where = Path(_text(config, "where"))
        agreement = Agreement.load(where / AGREEMENT_FILE)
        columns = Columns(_text(config, "score", "score"), _text(config, "label", "label"))
        return cls(Path(_text(config, "data")), columns, where, agreement)

    def table(self) -> Path:
        """The site's table, if it lies inside the folder that the site allows."""
        try:
            allowed = self.agreement.data_folder.resolve(strict=True)
            table = (allowed / self.data).resolve(strict=True)
        except OSError as error:
            raise FileInvalid(
                f"{self.data}: cannot be found ({error.strerror}). Check data in the node "
                f"configuration, and data-folder in {self.where / AGREEMENT_FILE}."
            ) from error
        if not table.is_file():
            raise FileInvalid(f"{self.data}: this is not a file. Name one CSV or Parquet file.")
        if not table.is_relative_to(allowed):
            raise FileInvalid(
                f"{self.data}: this site reads tables inside {allowed} only; this one is "
                "elsewhere, or a link to elsewhere. Move the table, or change data-folder."
            )
        return table

    def counts(self, survey: Survey) -> IntArray:
        """The site's examples per label and leaf cell."""
        return count_file(self.table(), self.columns, survey.grid)

    def account(self, who: str) -> LedgerAccount:
        """The ledger that is charged before anything leaves."""
        part = Part(self.agreement.data_id)
        ledger = Ledger(self.where / LEDGER_FILE)
        return LedgerAccount(ledger, part, who=who, again=self.agreement.again)

    def check_ledger(self, survey: Survey) -> None:
        """Raise now what charging this survey would raise later, when others count on this site."""
        account = self.account("nobody yet")
        account.ledger.would_refuse(survey, account.part, again=account.again)

    @property
    def rounds(self) -> Path:
        """Where the state of secure aggregation is kept between messages."""
        return self.where / ROUNDS_FOLDER

    def identity(self) -> Identity | None:
        """The site's signing key, where identities are pinned."""
        found = self.agreement.identity
        return None if found is None else Identity.load(found)

    def roster(self) -> Roster | None:
        """The identities that this site takes part with, or None for anybody."""
        found = self.agreement.roster
        return None if found is None else Roster.load(found)


def node_config(
    given: Mapping[str, object], run_config: Mapping[str, object]
) -> Mapping[str, object]:
    """A site's configuration: the SuperNode's own, or a file's in Flower's simulation runtime.

    Virtual nodes know nothing but their number; the run's setting `simulation` names a folder
    with `0.toml`, `1.toml` and so on. A real SuperNode, which is configured, never looks there.
    """
    folder = run_config.get("simulation")
    number = given.get("partition-id")
    if set(given) != _VIRTUAL or not isinstance(folder, str) or not folder:
        return given
    if type(number) is not int:
        raise SettingInvalid("a virtual node is known by its number; this one has none.")
    path = Path(folder) / f"{number}.toml"
    content = _read_toml(path)
    if not isinstance(content, dict):
        raise FileInvalid(f"{path}: not a site's configuration.")
    return content


def _read_toml(path: Path) -> object:
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


def _text(config: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = config.get(name, default)
    if not isinstance(value, str) or not value or len(value) > 4096:
        raise SettingInvalid(
            f"the node configuration must name {name!r}; found none, or not a text. Start the "
            f"SuperNode with --node-config '{name}=\"...\"'."
        )
    return value
