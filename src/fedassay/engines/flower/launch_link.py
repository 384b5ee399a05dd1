"""`federation start-link`: a SuperLink on loopback behind its front, or none at all."""

import asyncio
import json
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from fedassay.engines.flower.front import Front
from fedassay.engines.flower.launch import (
    Processes,
    check_private,
    clean_environment,
    flower_program,
    fresh_secret,
    make_private,
)
from fedassay.engines.flower.link_lock import LINK_PROGRAMS
from fedassay.engines.flower.programs import BIN_FOLDER, check_programs, make_programs
from fedassay.engines.flower.progress import say
from fedassay.engines.flower.versions import check_version
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import write_whole

ANALYST_FOLDER = "analyst"
NAME = "hospitals"
_POLL_SECONDS = 0.2
_START_SECONDS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLaunch:
    """Where a coordinator's SuperLink keeps its files, and who reaches it where."""

    folder: Path
    certificates: Path
    host: str = "0.0.0.0"  # noqa: S104  # of the front, which is there for strangers
    port: int = 8443
    control_port: int = 8000
    """On the loopback interface: registering sites and starting runs."""


def listening(text: str) -> tuple[str, int]:
    """The host and port of HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise SettingInvalid(f"sites reach the SuperLink at HOST:PORT; found {text[:40]!r}.")
    return host, int(port)


def check_link(launch: LinkLaunch) -> None:
    """Raise unless the SuperLink may be started: TLS, loopback for control, programs ours."""
    check_version()
    if launch.port == launch.control_port:
        raise SettingInvalid(
            f"sites and analysts reach the SuperLink by two ports; found {launch.port} twice. "
            "Choose another control port."
        )
    check_private(launch.certificates / "server.key")
    check_certificate(launch.certificates)
    make_private(launch.folder)
    programs = launch.folder / BIN_FOLDER
    if not programs.exists():
        make_programs(programs, LINK_PROGRAMS)
    check_programs(programs, LINK_PROGRAMS)
    for host, port in (("127.0.0.1", launch.control_port), (launch.host, launch.port)):
        _check_free(host, port)


def check_certificate(folder: Path) -> None:
    """Raise unless the server's certificate is its authority's, in date, and for loopback too."""
    try:
        authority, server = (
            x509.load_pem_x509_certificate((folder / name).read_bytes())
            for name in ("ca.crt", "server.crt")
        )
        server.verify_directly_issued_by(authority)
        names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except OSError as error:
        raise FileInvalid(
            f"{folder}: must hold ca.crt, server.crt and server.key ({error.strerror}). Make "
            "them: fedassay federation certificates HOST -o FOLDER"
        ) from error
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound) as error:
        raise FileInvalid(
            f"{folder}: server.crt must be a certificate that ca.crt signed, with the names of its "
            "hosts; it is not. Make them: fedassay federation certificates HOST -o FOLDER"
        ) from error
    local = IPv4Address("127.0.0.1") in names.get_values_for_type(x509.IPAddress)
    if (
        not local
        or not server.not_valid_before_utc <= datetime.now(UTC) < server.not_valid_after_utc
    ):
        raise FileInvalid(
            f"{folder}: server.crt must be in date and name 127.0.0.1 too, because the SuperLink "
            "listens there only; it is not, or does not. Make new ones: fedassay federation "
            "certificates HOST -o FOLDER"
        )


def start_link(launch: LinkLaunch) -> int:
    """Run the SuperLink and its front until they are stopped; returns the exit code."""
    check_link(launch)
    folder = launch.folder.absolute()
    certificates = launch.certificates.absolute()
    home = folder / "flower"
    make_private(home)
    secret = fresh_secret(home / "superexec.secret")
    _write_analyst(folder / ANALYST_FOLDER, certificates, launch.control_port)
    control = f"127.0.0.1:{launch.control_port}"
    with Processes(clean_environment(folder / BIN_FOLDER, home)) as processes:
        link = processes.start(
            flower_program("flower-superlink"),
            "--ssl-ca-certfile", certificates / "ca.crt",
            "--ssl-certfile", certificates / "server.crt",
            "--ssl-keyfile", certificates / "server.key",
            "--enable-supernode-auth",
            "--disable-runtime-dependency-installation",
            "--isolation", "process",
            "--superexec-auth-secret-file", secret,
            "--database", folder / "superlink.db",
            "--host", "127.0.0.1", "--port", launch.control_port,
        )  # fmt: skip
        processes.start(
            flower_program("flower-superexec"),
            "--root-certificates", certificates / "ca.crt",
            "--runtime-api-address", control,
            "--superexec-auth-secret-file", secret,
            "--parent-pid", link,
        )  # fmt: skip
        return asyncio.run(_serve(launch, processes))


async def _serve(launch: LinkLaunch, processes: Processes) -> int:
    """Wait for the SuperLink, open the front, and watch both."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _START_SECONDS
    while not _answers("127.0.0.1", launch.control_port):
        if processes.stopping:
            return 0
        if processes.ended() is not None or loop.time() > end:
            say("The SuperLink did not start; its last lines are above.")
            return 1
        await asyncio.sleep(_POLL_SECONDS)
    if reached := [host for host in _own_addresses() if _answers(host, launch.control_port)]:
        say(
            f"Stopped: the control port {launch.control_port} answers at {reached[0]}, where "
            "strangers could start runs. It must answer at 127.0.0.1 only: look for a forwarding."
        )
        return 1
    until = asyncio.Event()
    front = asyncio.create_task(
        Front(launch.certificates, launch.control_port).serve(launch.host, launch.port, until=until)
    )
    say(
        f"Sites reach this SuperLink at port {launch.port}, analysts on this machine at "
        f"127.0.0.1:{launch.control_port} (export FLWR_HOME={launch.folder / ANALYST_FOLDER})."
    )
    code = 0
    while not processes.stopping and not front.done():
        if processes.ended() is not None:
            say("A process of the SuperLink ended; its last lines are above.")
            code = 1
            break
        await asyncio.sleep(_POLL_SECONDS)
    until.set()
    await front
    return code


def _write_analyst(folder: Path, certificates: Path, control_port: int) -> None:
    """What `flwr` reads: where the control API is. Written anew at every start."""
    make_private(folder)
    write_whole(
        folder / "config.toml",
        (
            f'[superlink]\ndefault = "{NAME}"\n\n[superlink.{NAME}]\n'
            f'address = "127.0.0.1:{control_port}"\n'
            f"root-certificates = {json.dumps(str(certificates / 'ca.crt'))}\n"
        ).encode(),
    )


def _check_free(host: str, port: int) -> None:
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise SettingInvalid(
            f"{host}:{port} cannot be listened on ({error.strerror}). Choose another port, or stop "
            "what is there."
        ) from error


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def _own_addresses() -> list[str]:
    """This machine's addresses as others see them."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    addresses = {str(item[4][0]) for item in found}
    return sorted(address for address in addresses if not address.startswith(("127.", "::1")))
