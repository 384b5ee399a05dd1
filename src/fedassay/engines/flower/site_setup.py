"""A site's folder, made once: what it agrees to, its ledger, its keys."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from fedassay.client import CEILING, ClientPolicy
from fedassay.engines.flower.agreement import (
    AGREEMENT_FILE,
    BUDGET,
    LARGEST_EPSILON,
    SITE_FORMAT,
    Agreement,
    check_reason,
)
from fedassay.engines.flower.credentials import make_node_key, write_public
from fedassay.engines.flower.launch import make_private
from fedassay.engines.flower.programs import BIN_FOLDER, make_programs
from fedassay.engines.flower.site import LEDGER_FILE
from fedassay.engines.flower.site_lock import SITE_PROGRAMS
from fedassay.errors import FileInvalid
from fedassay.files import Fields, read_json, write_json
from fedassay.ledger import Budget, Ledger, Part
from fedassay.secagg import Identity, Roster

NODE_KEY = "node.key"
IDENTITY_FILE = "identity.pem"
ROSTER_FILE = "roster.json"
MEMBER_FILE = "member.json"
MEMBER_FORMAT = "fedassay.member/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteOptions:
    """What a new site agrees to."""

    name: str
    data_folder: Path
    largest_epsilon: Fraction = LARGEST_EPSILON
    """The most that one survey may spend."""
    budget: Fraction = BUDGET
    """The most that all surveys together may spend."""
    reason: str = ""
    """Why more than the defaults; without one more is refused."""
    exact_sums: int = 0
    """How many exact sums the site answers before it is told to answer more."""
    smallest_cell: int = ClientPolicy().smallest_cell
    """Of sums without noise, the smallest count that may be published; 0 or 1 for any."""
    smallest_cohort: int = 3
    colluders: int | None = None
    """How many sites may work together with a server; None for a third of the roster."""
    model_digests: Sequence[str] = ()
    again: bool = True
    pinned: bool = True
    trusted_server: bool = False


def prepare_site(folder: Path, wishes: SiteOptions) -> Agreement:
    """Make a site's folder; nothing that is there is written over."""
    # What is wrong shows before anything is written.
    Part(wishes.name)
    ClientPolicy(largest_epsilon=wishes.largest_epsilon)
    check_reason(wishes.largest_epsilon, wishes.budget, wishes.reason)
    budget = Budget(None, wishes.budget, exact_sums=wishes.exact_sums)
    path = folder / AGREEMENT_FILE
    make_private(folder)
    write_public(path, _agreement(wishes).encode())
    agreement = Agreement.load(path)
    ledger = Ledger.create(folder / LEDGER_FILE)
    ledger.set_budget(budget, who=wishes.name)
    make_programs(folder / BIN_FOLDER, SITE_PROGRAMS)
    make_node_key(folder / NODE_KEY)
    identity = Identity.generate()
    identity.save(folder / IDENTITY_FILE)
    write_json(
        folder / MEMBER_FILE,
        {"format": MEMBER_FORMAT, "name": wishes.name, "key": identity.public.hex()},
    )
    return agreement


def make_roster(members: Sequence[Path]) -> Roster:
    """The roster of all sites, from the `member.json` of each."""
    found = []
    for path in members:
        fields = Fields(read_json(path, MEMBER_FORMAT), str(path))
        fields.only("format", "name", "key")
        found.append({"name": fields.text("name"), "key": fields.text("key")})
    if len(found) < 2:
        raise FileInvalid(f"a roster lists at least 2 sites; found {len(found)}.")
    return Roster.from_json({"format": "fedassay.roster/1", "members": found})


def _agreement(wishes: SiteOptions) -> str:
    pin = "" if wishes.pinned else "# "
    reason = f"reason = {_text(wishes.reason)}" if wishes.reason else '# reason = "..."'
    floor = "# colluders = 1" if wishes.colluders is None else f"colluders = {wishes.colluders}"
    return f"""\
# What this site agrees to, whoever asks. Without this file it answers nothing.
format = "{SITE_FORMAT}"

# Tables outside this folder are never read.
data-folder = {_text(str(wishes.data_folder.absolute()))}

# The name under which the ledger charges this data.
data-id = {_text(wishes.name)}

# The most that one survey may tell about one row (or client, where a survey protects clients):
# no answer becomes more than e^epsilon times as likely by it. At 1 that is 2.7 times, at 5 it is
# 148 times, and at {CEILING}, the most that any client answers, 22,026 times. Two surveys that
# belong together count as one: their total is compared, and charged before the first.
largest-epsilon = {_text(str(wishes.largest_epsilon))}

# The most that all surveys together may tell; what was spent is in ledger.db and never comes back.
budget = {_text(str(wishes.budget))}

# Why, where they are more than {LARGEST_EPSILON} and {BUDGET}. Without a reason more is refused.
{reason}

# Whether sums without noise may be revealed (privacy = "secure").
exact-sums = {_flag(wishes.exact_sums > 0)}

# Of such sums, the smallest count that may be published; 0 for any. Surveys that publish smaller
# ones are declined, and so are those with too many cells for the rows of this site.
smallest-cell = {wishes.smallest_cell}

# Answer only in a crowd of at least so many honest sites.
smallest-cohort = {wishes.smallest_cohort}

# How many of the other sites may work together with the server: a survey must withstand as many.
# Without a number it is a third of the roster, at least 1.
{floor}

# SHA-256 of the models this site helps to assess; empty for any.
model-digests = [{", ".join(map(_text, wishes.model_digests))}]

# A survey that was charged before: answer and charge it once more, or refuse it.
again = {_flag(wishes.again)}

# Whether the server may see this site's own exact report. Only with made-up data.
trusted-server = {_flag(wishes.trusted_server)}

# Take part only with the identities of this roster, so that a server cannot invent sites.
{pin}identity = "{IDENTITY_FILE}"
{pin}roster = "{ROSTER_FILE}"
"""


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _flag(value: bool) -> str:
    return "true" if value else "false"
