"""`federation certificates`, `site`, `roster`: the files that a real federation starts from."""

from pathlib import Path
from typing import Annotated

import typer

from fedassay.cli import options
from fedassay.cli.console import err, plain
from fedassay.cli.launchers import (
    app_command,
    programs_command,
    start_link_command,
    start_site_command,
)
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.cli.questions import questions_command
from fedassay.engines.flower.agreement import BUDGET, LARGEST_EPSILON, Agreement
from fedassay.engines.flower.credentials import CERTIFICATE_DAYS, make_certificates
from fedassay.engines.flower.site_setup import (
    MEMBER_FILE,
    NODE_KEY,
    ROSTER_FILE,
    SiteOptions,
    make_roster,
    prepare_site,
)
from fedassay.errors import FileInvalid
from fedassay.files import parse_fraction

_FORMAT = "fedassay.federation/1"

federation_app = typer.Typer(
    help="A federation over Flower: certificates, sites, roster, app, and what runs.",
    no_args_is_help=True,
)
federation_app.command("start-link")(start_link_command)
federation_app.command("start-site")(start_site_command)
federation_app.command("app")(app_command)
federation_app.command("programs")(programs_command)
federation_app.command("questions")(questions_command)


@federation_app.command("certificates")
def certificates(
    hosts: Annotated[
        list[str],
        typer.Argument(metavar="HOST...", help="Names and addresses sites reach the server by."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="A new folder.")
    ] = Path("certificates"),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make TLS certificates for the SuperLink, and the authority that sites check them with.

    [bold]Example[/bold]

      fedassay federation certificates superlink.example.org -o certificates
    """
    voice = Voice(as_json, quiet)
    make_certificates(output, hosts)
    voice.result(
        {"format": _FORMAT, "output": str(output), "hosts": hosts, "days": CERTIFICATE_DAYS}
    )
    voice.say(
        f"Wrote {plain(output)}: give ca.crt to every site; keep server.key where the SuperLink "
        f"runs. Valid for {CERTIFICATE_DAYS} days."
    )


@federation_app.command("site")
def site(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The site's own folder.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the site and its data.")],
    data_folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Tables outside it are never read.")
    ],
    largest_epsilon: Annotated[
        str, typer.Option(metavar="E", help="The most that one survey may spend.")
    ] = str(LARGEST_EPSILON),
    budget: Annotated[
        str, typer.Option(metavar="E", help="The most that all surveys together may spend.")
    ] = str(BUDGET),
    reason: Annotated[
        str,
        typer.Option(metavar="TEXT", help="Why more than the defaults; written to site.toml."),
    ] = "",
    exact_sums: Annotated[
        bool, typer.Option("--exact-sums", help="Answer one sum without noise.")
    ] = False,
    smallest_cell: Annotated[
        int,
        typer.Option(metavar="K", min=0, help="Decline exact sums that publish counts below K."),
    ] = 10,
    smallest_cohort: Annotated[
        int, typer.Option(metavar="N", min=1, help="Answer only among so many honest sites.")
    ] = 3,
    colluders: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Sites that may conspire with the server (default: a third of the roster).",
        ),
    ] = None,
    model: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Help to assess these models only.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again/--once", help="Charge a repeated survey again, or refuse it.")
    ] = True,
    pinned: Annotated[
        bool, typer.Option("--pinned/--unpinned", help="Take part only with a roster's sites.")
    ] = True,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a site's folder: agreement, ledger, node key, identity.

    [bold]Examples[/bold]

      fedassay federation site site --name hospital-1 --data-folder /srv/scores

      fedassay federation site site --name hospital-1 --data-folder /srv/scores
      --largest-epsilon 3 --reason "only public scores"
    """
    if not data_folder.is_dir():
        raise FileInvalid(f"{data_folder}: there is no such folder. Make it, or name another.")
    agreement = prepare_site(
        folder,
        SiteOptions(
            name=name,
            data_folder=data_folder,
            largest_epsilon=parse_fraction(largest_epsilon, "the largest epsilon"),
            budget=parse_fraction(budget, "the budget"),
            reason=reason.strip(),
            exact_sums=int(exact_sums),
            smallest_cell=smallest_cell,
            smallest_cohort=smallest_cohort,
            colluders=colluders,
            model_digests=[options.file_digest(path) for path in model or ()],
            again=again,
            pinned=pinned,
        ),
    )
    voice = Voice(as_json, quiet)
    voice.result(
        {
            "format": _FORMAT,
            "output": str(folder),
            "name": name,
            "pinned": pinned,
            "largest_epsilon": str(agreement.largest_epsilon),
            "budget": str(agreement.budget),
            "reason": agreement.reason,
            "exact_sums": agreement.exact_sums,
        }
    )
    # What is beyond the defaults is said whatever else is quiet.
    _say_aloud(agreement)
    pin = f", {MEMBER_FILE} for the roster" if pinned else ""
    voice.say(
        f"Wrote {plain(folder)}: read site.toml. Send {NODE_KEY}.pub to whoever runs the SuperLink"
        f"{pin}; everything else stays here."
    )


def _say_aloud(agreement: Agreement) -> None:
    """What this site gives beyond the defaults."""
    if agreement.reason:
        err.print(
            f"NOTE: this site spends up to epsilon {agreement.largest_epsilon} on one survey "
            f"(default {LARGEST_EPSILON}) and {agreement.budget} on all (default {BUDGET}). "
            f"Reason given: {agreement.reason}",
            style="yellow",
            markup=False,
        )
    if agreement.colluders == 0:
        err.print(
            "NOTE: this site trusts every other site not to work together with the server.",
            style="yellow",
            markup=False,
        )
    if agreement.exact_sums:
        err.print(
            "NOTE: this site takes part in sums without noise: whoever knows all other sites' "
            "rows learns its own.",
            style="yellow",
            markup=False,
        )


@federation_app.command("roster")
def roster(
    members: Annotated[
        list[Path], typer.Argument(metavar="MEMBER...", help=f"Each site's {MEMBER_FILE}.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Roster file.")
    ] = Path(ROSTER_FILE),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """List the sites that take part; every site keeps a copy, and compares its digest.

    [bold]Example[/bold]

      fedassay federation roster hospital-*/member.json -o roster.json
    """
    voice = Voice(as_json, quiet)
    check_output(output, *members, force=force)
    listed = make_roster(members)
    listed.save(output)
    voice.result(
        {
            "format": _FORMAT,
            "output": str(output),
            "names": list(listed.names),
            "digest": listed.digest.hex(),
        }
    )
    voice.say(
        f"Wrote {plain(output)}: {len(listed.names)} sites, digest {listed.digest.hex()[:16]}. "
        "Compare the digest by telephone, then put the file beside each site.toml."
    )
