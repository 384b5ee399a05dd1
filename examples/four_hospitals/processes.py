"""A federation's processes on this machine: a SuperLink, SuperNodes, runs; and their end."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from fedassay.engines.flower.launch_link import ANALYST_FOLDER, NAME

APP = Path(__file__).parents[1] / "flower"
_STARTED = re.compile(r"Successfully started run (\d+)")
_CONNECTED = re.compile(r"SuperNode ID: (\d+)")
_SERVING = "Sites reach this SuperLink"
_FEDASSAY = (sys.executable, "-m", "fedassay", "federation")
_GRACE_SECONDS = 8.0


def command(name: str) -> str:
    """A program of this Python's environment."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is not installed. Install it: pip install 'fedassay[flower]'")
    return found


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@dataclass(frozen=True, slots=True)
class Run:
    """A run that ended."""

    log: str
    run_id: str

    @property
    def failed(self) -> bool:
        """Whether the ServerApp said so."""
        return "Wrote " not in self.log


@dataclass(slots=True)
class Federation:
    """Starts processes on free ports of the loopback interface; leaving it ends them all."""

    folder: Path
    """Holds `certificates/`, and gets logs and Flower's own files."""
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    control_port: int = field(default_factory=free_port)
    _virtual_sites: int = 0
    _analyst: Path = Path()
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> "Federation":
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Where sites reach the SuperLink: its front."""
        return f"127.0.0.1:{self.port}"

    @property
    def certificates(self) -> Path:
        """The coordinator's certificates."""
        return self.folder / "certificates"

    def start_superlink(self) -> None:
        """A SuperLink behind its front, which lets in registered SuperNodes only."""
        before = self.log("superlink").count(_SERVING)
        self._start(
            "superlink", *_FEDASSAY, "start-link", self.folder / "link",
            "--certificates", self.certificates,
            "--listen", self.address,
            "--control-port", self.control_port,
        )  # fmt: skip
        self.wait_for("superlink", lambda log: log.count(_SERVING) > before)
        self._analyst = self.folder / "link" / ANALYST_FOLDER

    def start_simulation(self, *, virtual_sites: int) -> None:
        """Flower's simulation runtime, on loopback, in place of SuperLink and SuperNodes."""
        self._virtual_sites = virtual_sites
        self._start(
            "superlink", command("flower-superlink"), "--simulation",
            "--ssl-ca-certfile", self.certificates / "ca.crt",
            "--ssl-certfile", self.certificates / "server.crt",
            "--ssl-keyfile", self.certificates / "server.key",
            "--disable-runtime-dependency-installation",
            "--database", self.folder / "superlink.db",
            "--host", "127.0.0.1", "--port", self.control_port,
        )  # fmt: skip
        self.wait_for("superlink", lambda log: "Uvicorn running" in log)
        self._analyst = self.home_of("analyst", f"127.0.0.1:{self.control_port}")

    def home_of(self, name: str, address: str) -> Path:
        """What somebody's `flwr` knows: an address, and the authority's certificate."""
        home = self._home(name)
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "{NAME}"\n\n[superlink.{NAME}]\naddress = "{address}"\n'
            f'root-certificates = "{self.certificates / "ca.crt"}"\n'
        )
        return home

    def register(self, *public_keys: Path) -> None:
        """Let SuperNodes with these keys in."""
        for key in public_keys:
            self._processes[str(key)] = subprocess.Popen(
                [command("flwr"), "supernode", "register", str(key), NAME],
                env=self.environment_of(self._analyst),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        for key in public_keys:
            process = self._processes[str(key)]
            said, _ = process.communicate(timeout=120)
            del self._processes[str(key)]
            if process.returncode or b"registered successfully" not in said:
                raise RuntimeError(f"flwr supernode register failed:\n{said.decode()}")

    def start_site(
        self, name: str, key: Path, config: Mapping[str, str], *, locked: bool = True
    ) -> None:
        """A site: by its launcher, which runs no app that is sent, or as Flower alone has it."""
        if locked:
            self._start(
                name, *_FEDASSAY, "start-site", config["where"],
                "--superlink", self.address,
                "--certificate", self.certificates / "ca.crt",
                "--data", config["data"], "--score", config["score"], "--label", config["label"],
                "--port", free_port(),
            )  # fmt: skip
            return
        pairs = " ".join(f'{setting}="{value}"' for setting, value in config.items())
        self._start(
            name, command("flower-supernode"),
            "--root-certificates", self.certificates / "ca.crt",
            "--superlink", self.address,
            "--auth-supernode-private-key", key,
            "--host", "127.0.0.1", "--port", free_port(),
            "--node-config", pairs,
        )  # fmt: skip

    def restart_site(
        self, name: str, key: Path, config: Mapping[str, str], *, seconds: float = 150.0
    ) -> None:
        """Start a killed SuperNode until it is let in: its SuperLink has to miss it first."""
        end = time.monotonic() + seconds
        before = len(_CONNECTED.findall(self.log(name)))
        while time.monotonic() < end:
            self.start_site(name, key, config)
            while self._processes[name].poll() is None and time.monotonic() < end:
                if len(_CONNECTED.findall(self.log(name))) > before:
                    return
                time.sleep(0.1)
            # What it started may outlive it.
            self.kill(name)
            time.sleep(2.0)
        raise RuntimeError(f"{name} was not let in again:\n{self.log(name)}")

    def wait_for_sites(self, *names: str) -> dict[str, str]:
        """Wait until SuperNodes are connected; returns their node ids."""
        for name in names:
            self.wait_for(name, lambda log: bool(_CONNECTED.search(log)))
        found = {name: _CONNECTED.search(self.log(name)) for name in names}
        return {name: match.group(1) for name, match in found.items() if match}

    def kill(self, name: str) -> None:
        """End a process and its children at once, as a power cut would."""
        process = self._processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def run(
        self,
        settings: Mapping[str, str | int | float],
        *,
        on_line: Callable[[str], None] = lambda line: None,
        app: Path = APP,
        home: Path | None = None,
    ) -> Run:
        """`flwr run`, by the analyst or whose home it is, to its end, line by line."""
        pairs = " ".join(
            f"{name}='{value}'" if isinstance(value, str) else f"{name}={value}"
            for name, value in settings.items()
        )
        arguments = ["run", str(app), NAME, "--stream", "--run-config", pairs]
        if self._virtual_sites:
            arguments += ["--federation-config", f"num-supernodes={self._virtual_sites}"]
        process = subprocess.Popen(
            [command("flwr"), *arguments],
            env=self.environment_of(home or self._analyst),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._processes["run"] = process  # type: ignore[assignment]  # text, not bytes
        lines = []
        if process.stdout is not None:
            with process.stdout as said:
                for line in said:
                    lines.append(line)
                    on_line(line.rstrip())
        process.wait()
        self._processes.pop("run", None)
        log = "".join(lines)
        started = _STARTED.search(log)
        with (self.folder / "logs" / "runs.log").open("a") as stream:
            stream.write(log)
        return Run(log, started.group(1) if started else "")

    def log(self, name: str) -> str:
        """All that a process has said."""
        path = self.folder / "logs" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for(self, name: str, holds: Callable[[str], bool], *, seconds: float = 90.0) -> None:
        """Wait until a process has said something."""
        end = time.monotonic() + seconds
        while not holds(self.log(name)):
            ended = name in self._processes and self._processes[name].poll() is not None
            if ended or time.monotonic() > end:
                raise RuntimeError(f"{name} did not get ready:\n{self.log(name)}")
            time.sleep(0.1)

    def wait_for_end(self, name: str, *, seconds: float = 60.0) -> int:
        """Wait until a process ends by itself; returns its exit code."""
        return self._processes[name].wait(seconds)

    def stop(self) -> None:
        """End everything that was started; twice does no harm."""
        processes, self._processes = self._processes, {}
        for process in processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        end = time.monotonic() + _GRACE_SECONDS
        for process in processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, end - time.monotonic()))
        for process in processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        while leftovers(self.folder) and time.monotonic() < end + _GRACE_SECONDS:
            time.sleep(0.1)

    def _start(self, name: str, *arguments: object) -> None:
        log = (self.folder / "logs" / f"{name}.log").open("ab")
        with log:
            self._processes[name] = subprocess.Popen(
                [str(argument) for argument in arguments],
                env=self.environment_of(self._home(name)),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _home(self, name: str) -> Path:
        home = self.folder / "homes" / name
        home.mkdir(parents=True, exist_ok=True)
        return home

    def environment_of(self, home: Path) -> dict[str, str]:
        """Quiet, quick to poll, and with a home of its own, as on a machine of its own."""
        # Every message starts a Python: let it keep what it compiled.
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return {
            **inherited,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
            "NO_COLOR": "1",
            **self.environment,
        }


def leftovers(folder: Path) -> list[int]:
    """Processes of a federation in this folder that still run."""
    mark = f"FLWR_HOME={folder}{os.sep}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found
