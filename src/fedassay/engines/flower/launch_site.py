"""`federation start-site`: a SuperNode that runs nothing but this fedassay, or does not start."""

import time
from dataclasses import dataclass
from pathlib import Path

from fedassay.engines.flower.launch import (
    Processes,
    check_private,
    clean_environment,
    flower_program,
    fresh_secret,
    make_private,
)
from fedassay.engines.flower.programs import BIN_FOLDER, check_programs
from fedassay.engines.flower.progress import say
from fedassay.engines.flower.site import Site
from fedassay.engines.flower.site_lock import SITE_PROGRAMS
from fedassay.engines.flower.site_setup import NODE_KEY
from fedassay.engines.flower.versions import check_version
from fedassay.errors import FileInvalid, SettingInvalid

FLOWER_FOLDER = "flower"
SECRET_FILE = "superexec.secret"  # noqa: S105  # a file's name
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLaunch:
    """How a site connects, and which table it answers from."""

    folder: Path
    """Made by `federation site`."""
    superlink: str
    """HOST:PORT of the coordinator's front."""
    authority: Path
    """The coordinator's `ca.crt`."""
    data: str
    score: str
    label: str
    patient: str = ""
    """The column that says whose each row is, where surveys may protect patients."""
    time: str = ""
    """The column that says when each row was."""
    port: int = 9094
    """On the loopback interface, between this site's own processes."""

    @property
    def config(self) -> dict[str, str]:
        """What the site's answers are made from."""
        named = {"patient": self.patient, "time": self.time}
        return {
            "data": self.data,
            "score": self.score,
            "label": self.label,
            **{name: column for name, column in named.items() if column},
            "where": str(self.folder.absolute()),
        }


def check_site(launch: SiteLaunch) -> None:
    """Raise unless this site may be started: every limit set, every program ours, every key hidden.

    What it says of tables and keys is for the site's own terminal.
    """
    check_version()
    host, colon, port = launch.superlink.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise SettingInvalid("the SuperLink is named as HOST:PORT; found something else.")
    if not launch.authority.is_file():
        raise FileInvalid(
            f"{launch.authority}: there is no such file; without the coordinator's ca.crt anybody "
            "could be the SuperLink. Ask the coordinator for it."
        )
    for value in launch.config.values():
        if '"' in value or "\\" in value or not value.isprintable():
            raise SettingInvalid(
                "tables, columns and folders are named by printable characters without quotes or "
                "backslashes; found others. Rename them."
            )
    check_private(launch.folder / NODE_KEY)
    check_programs(launch.folder / BIN_FOLDER, SITE_PROGRAMS)
    Site.from_config(launch.config).check()


def start_site(launch: SiteLaunch) -> int:
    """Run a site until it is stopped; returns the exit code."""
    check_site(launch)
    home = launch.folder.absolute() / FLOWER_FOLDER
    make_private(home)
    secret = fresh_secret(home / SECRET_FILE)
    address = f"127.0.0.1:{launch.port}"
    pairs = " ".join(f'{name}="{value}"' for name, value in launch.config.items())
    environment = clean_environment(launch.folder.absolute() / BIN_FOLDER, home)
    with Processes(environment) as processes:
        node = processes.start(
            flower_program("flower-supernode"),
            "--root-certificates", launch.authority.absolute(),
            "--superlink", launch.superlink,
            "--auth-supernode-private-key", launch.folder.absolute() / NODE_KEY,
            "--isolation", "process",
            "--superexec-auth-secret-file", secret,
            "--host", "127.0.0.1", "--port", launch.port,
            "--node-config", pairs,
        )  # fmt: skip
        processes.start(
            flower_program("flower-superexec"),
            "--insecure",
            "--runtime-api-address", address,
            "--superexec-auth-secret-file", secret,
            "--parent-pid", node,
        )  # fmt: skip
        say(f"Site {launch.folder.name}: connecting to {launch.superlink}.")
        while not processes.stopping:
            if (code := processes.ended()) is not None:
                say("A process of this site ended; its last lines are above.")
                return code or 1
            time.sleep(_POLL_SECONDS)
    return 0
