"""`federation start-link`, `start-site`, `app`, `programs`: what runs, and runs safely or not."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from fedassay.cli import columns
from fedassay.cli.console import plain
from fedassay.cli.outputs import JsonOption, QuietOption, Voice

_FORMAT = "fedassay.federation/1"


def start_link_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The SuperLink's own folder.")],
    certificates: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Made by federation certificates.")
    ] = Path("certificates"),
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where sites reach it.")
    ] = "0.0.0.0:8443",  # the front is for strangers
    control_port: Annotated[
        int, typer.Option(metavar="PORT", help="Where analysts on this machine reach it.")
    ] = 8000,
) -> None:
    """Start the SuperLink, reachable for sites only, or refuse to.

    Control and runs stay on this machine's loopback interface; strangers find a front that
    passes on the calls of registered sites. Stop it with Ctrl-C.

    [bold]Example[/bold]

      fedassay federation start-link link --certificates certificates
    """
    from fedassay.engines.flower.launch_link import LinkLaunch, listening, start_link

    host, port = listening(listen)
    launch = LinkLaunch(
        folder=folder, certificates=certificates, host=host, port=port, control_port=control_port
    )
    raise typer.Exit(start_link(launch))


def start_site_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Made by federation site.")],
    superlink: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the coordinator's SuperLink is.")
    ],
    data: Annotated[str, typer.Option(metavar="FILE", help="Table inside the site's data folder.")],
    certificate: Annotated[
        Path, typer.Option(metavar="FILE", help="The coordinator's ca.crt.")
    ] = Path("ca.crt"),
    score: Annotated[str, typer.Option(metavar="COL", help="Column with scores.")] = "score",
    label: Annotated[str, typer.Option(metavar="COL", help="Column with labels.")] = "label",
    patient: columns.PatientOption = None,
    time: columns.TimeOption = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", help="On loopback, between this site's processes.")
    ] = 9094,
) -> None:
    """Start a site that answers surveys within its site.toml, or refuse to.

    [bold]Example[/bold]

      fedassay federation start-site site --superlink example.org:8443 --data s.csv
    """
    from fedassay.engines.flower.launch_site import SiteLaunch, start_site

    launch = SiteLaunch(
        folder=folder,
        superlink=superlink,
        authority=certificate,
        data=data,
        score=score,
        label=label,
        patient=patient or "",
        time=time or "",
        port=port,
    )
    raise typer.Exit(start_site(launch))


def app_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the app that flwr run is started with; its pyproject.toml has a run's settings.

    [bold]Example[/bold]

      fedassay federation app app
    """
    from fedassay.engines.flower.app_folder import write_app

    write_app(folder)
    voice = Voice(as_json, quiet)
    voice.result({"format": _FORMAT, "output": str(folder)})
    voice.say(f"Wrote {plain(folder)}: start a run with flwr run {plain(folder)} --stream")


def programs_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The site's own folder.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a site's programs anew, after an update of fedassay or Python.

    [bold]Example[/bold]

      fedassay federation programs /srv/fedassay
    """
    from fedassay.engines.flower.agreement import AGREEMENT_FILE, Agreement
    from fedassay.engines.flower.programs import BIN_FOLDER, make_programs
    from fedassay.engines.flower.site_lock import SITE_PROGRAMS

    Agreement.load(folder / AGREEMENT_FILE)
    programs = folder / BIN_FOLDER
    shutil.rmtree(programs, ignore_errors=True)
    make_programs(programs, SITE_PROGRAMS)
    voice = Voice(as_json, quiet)
    voice.result({"format": _FORMAT, "output": str(programs)})
    voice.say(f"Wrote {plain(programs)}.")
