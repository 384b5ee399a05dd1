"""A site: its table, and everything a survey must pass before it is answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedassay.client import ClientPolicy
from fedassay.engines.flower.agreement import (
    AGREEMENT_FILE,
    Agreement,
    default_colluders,
    read_toml,
)
from fedassay.engines.flower.questions import QUESTIONS_FILE, Questions
from fedassay.errors import FileInvalid, LedgerInvalid, SettingInvalid
from fedassay.examples import IntArray
from fedassay.ledger import Ledger, LedgerAccount, Part, TableDigest
from fedassay.patient_rows import limits_patients
from fedassay.randomness import SystemRandomness
from fedassay.secagg.identity import Identity, Roster
from fedassay.survey import Survey
from fedassay.tables.reading import Columns, count_patients_file, count_survey_file
from fedassay.tables.split_rows import count_split_file, splits_rows

LEDGER_FILE = "ledger.db"
ROUNDS_FOLDER = "rounds"
_VIRTUAL = {"partition-id", "num-partitions"}


@dataclass(frozen=True, slots=True)
class Site:
    """One site of a federation, as its node configuration names it."""

    data: Path
    columns: Columns
    where: Path
    agreement: Agreement

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> "Site":
        """Read a SuperNode's configuration: `data`, `score`, `label` and `where`.

        `patient` and `time` name columns too, where surveys may protect patients.
        """
        where = Path(_text(config, "where"))
        agreement = Agreement.load(where / AGREEMENT_FILE)
        columns = Columns(
            _text(config, "score", "score"),
            _text(config, "label", "label"),
            patient=_text(config, "patient") if "patient" in config else None,
            time=_text(config, "time") if "time" in config else None,
        )
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

    def rows(self, survey: Survey) -> tuple[IntArray, TableDigest | None]:
        """The site's examples per label and leaf cell, those whose turn it is.

        Where each row answers one of two surveys, also what tells the table from another.
        """
        if splits_rows(survey):
            return count_split_file(self.table(), self.columns, survey, self.name)
        if limits_patients(survey):
            counts, _ = count_patients_file(
                self.table(), self.columns, survey, randomness=SystemRandomness()
            )
            return counts, None
        return count_survey_file(self.table(), self.columns, survey), None

    @property
    def name(self) -> str:
        """What others call this site: its name in the roster, or else its data's."""
        identity, roster = self.identity(), self.roster()
        if identity is None or roster is None:
            return self.agreement.data_id
        return roster.names[roster.index(identity.public)]

    def account(self, who: str, table: TableDigest | None = None) -> LedgerAccount:
        """The ledger that is charged before anything leaves."""
        part = Part(self.agreement.data_id)
        ledger = Ledger(self.where / LEDGER_FILE)
        return LedgerAccount(ledger, part, who=who, again=self.agreement.again, table=table)

    def policy(self, survey: Survey) -> ClientPolicy:
        """The client's policy for a survey."""
        agreed = self.agreement
        # A report that may be seen protects itself in any crowd.
        crowd = survey.reports_may_be_seen
        return ClientPolicy(
            smallest_cohort=1 if crowd else agreed.smallest_cohort,
            colluders=0 if crowd else self.colluders,
            largest_epsilon=agreed.largest_epsilon,
            exact_sums=agreed.exact_sums,
            smallest_cell=agreed.smallest_cell,
            model_digests=agreed.model_digests,
        )

    @property
    def colluders(self) -> int:
        """How many other sites a survey must withstand, whatever its server says."""
        if self.agreement.colluders is not None:
            return self.agreement.colluders
        roster = self.roster()
        return default_colluders(0 if roster is None else len(roster.names))

    def check(self) -> None:
        """Raise unless everything is there that this site needs to answer safely."""
        self.table()
        self._check_budget(self.account("nobody yet").ledger)
        if (self.identity() is None) != (self.roster() is None):
            raise SettingInvalid(
                "identities are pinned by two settings of site.toml together, identity and "
                "roster; found one. Add the other, or remove both."
            )

    def check_ledger(self, survey: Survey, table: TableDigest | None = None) -> None:
        """Raise now what charging this survey would raise later, when others count on this site.

        The first of two surveys must fit with the second, and the second must be the one that
        the first announced.
        """
        account = self.account("nobody yet")
        self._check_budget(account.ledger)
        account.ledger.would_refuse(survey, account.part, again=account.again, table=table)

    def _check_budget(self, ledger: Ledger) -> None:
        """Raise unless the ledger holds this site to the budget that it agreed to."""
        budgets = ledger.budgets(self.agreement.data_id)
        if not any(
            budget.window.is_ever
            and budget.epsilon is not None
            and budget.epsilon <= self.agreement.budget
            for budget in budgets
        ):
            raise LedgerInvalid(
                f"{self.where / LEDGER_FILE}: a site answers only while its ledger has the budget "
                f"of site.toml, {self.agreement.budget}, or a smaller one, for all time; it has "
                f"not. Set it: fedassay ledger budget {self.where / LEDGER_FILE} "
                f"--epsilon {self.agreement.budget}"
            )

    @property
    def questions(self) -> Questions:
        """Questions that reached the ledger and were not charged."""
        return Questions(self.where / QUESTIONS_FILE)

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
    content = read_toml(path)
    if not isinstance(content, dict):
        raise FileInvalid(f"{path}: not a site's configuration.")
    return content


def _text(config: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = config.get(name, default)
    if not isinstance(value, str) or not value or len(value) > 4096:
        raise SettingInvalid(
            f"the node configuration must name {name!r}; found none, or not a text. Start the "
            f"SuperNode with --node-config '{name}=\"...\"'."
        )
    return value
