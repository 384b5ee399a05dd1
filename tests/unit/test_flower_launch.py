"""Launchers refuse what is not safe; programs, certificates, environment and keys are looked at."""

import socket
import subprocess
import tomllib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedassay.cli.app import app as cli
from fedassay.engines.flower import credentials
from fedassay.engines.flower.app_folder import app_files, write_app
from fedassay.engines.flower.credentials import make_certificates
from fedassay.engines.flower.launch import clean_environment, fresh_secret
from fedassay.engines.flower.launch_link import LinkLaunch, check_link, listening
from fedassay.engines.flower.launch_site import SiteLaunch, check_site
from fedassay.engines.flower.link_lock import LINK_PROGRAMS
from fedassay.engines.flower.programs import check_programs, make_programs
from fedassay.engines.flower.site_lock import SITE_PROGRAMS
from fedassay.engines.flower.site_setup import SiteOptions, make_roster, prepare_site
from fedassay.engines.flower.versions import TESTED
from fedassay.errors import FedassayError, FileInvalid, SettingInvalid
from fedassay.ledger import Budget, Ledger
from tests.tables import ROOT


def launch_of(folder: Path) -> SiteLaunch:
    """A site that may be started."""
    scores = folder / "scores"
    scores.mkdir()
    (scores / "scores.csv").write_text("risk,outcome\n0.5,1\n")
    for name in ("north", "east"):
        prepare_site(folder / name, SiteOptions(name=name, data_folder=scores))
    roster = make_roster([folder / name / "member.json" for name in ("north", "east")])
    roster.save(folder / "north" / "roster.json")
    make_certificates(folder / "certificates", ["superlink.example.org"])
    return SiteLaunch(
        folder=folder / "north",
        superlink="superlink.example.org:8443",
        authority=folder / "certificates" / "ca.crt",
        data="scores.csv",
        score="risk",
        label="outcome",
    )


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def lift_budget(folder: Path) -> None:
    Ledger(folder / "ledger.db").set_budget(Budget(None, None))


def add_program(folder: Path) -> None:
    (folder / "bin" / "python").symlink_to("/bin/true")


UNSAFE = {
    "a program of Flower's own": (
        lambda f: rewrite(f / "bin" / "flwr-clientapp", "site_lock", "client_app"),
        "flwr-clientapp",
    ),
    "a program that is missing": (lambda f: (f / "bin" / "flwr-model").unlink(), "flwr-model"),
    "a program more": (add_program, "'python'"),
    "programs others may change": (lambda f: (f / "bin").chmod(0o777), "chmod go-w"),
    "one that others may change": (
        lambda f: (f / "bin" / "flwr-clientapp").chmod(0o775),
        "chmod go-w",
    ),
    "a key that others may read": (lambda f: (f / "node.key").chmod(0o644), "chmod go-rwx"),
    "no key": (lambda f: (f / "node.key").unlink(), "Check the path"),
    "no largest epsilon": (
        lambda f: rewrite(f / "site.toml", "largest-epsilon =", "# largest-epsilon ="),
        "largest-epsilon is missing",
    ),
    "no budget": (
        lambda f: rewrite(f / "site.toml", "budget =", "# budget ="),
        "budget is missing",
    ),
    "a budget lifted": (lift_budget, "fedassay ledger budget"),
    "no roster": (lambda f: (f / "roster.json").unlink(), "Check the path"),
    "no authority": (lambda f: (f.parent / "certificates" / "ca.crt").unlink(), "anybody could be"),
    "no table": (lambda f: (f.parent / "scores" / "scores.csv").unlink(), "cannot be found"),
}


@pytest.mark.parametrize(("spoil", "word"), UNSAFE.values(), ids=UNSAFE.keys())
def test_a_site_that_is_not_safe_does_not_start(tmp_path: Path, spoil: object, word: str) -> None:
    launch = launch_of(tmp_path)
    check_site(launch)
    assert callable(spoil)
    spoil(launch.folder)
    with pytest.raises(FedassayError, match=word):
        check_site(launch)


def test_settings_of_a_site_cannot_smuggle_another_one_in(tmp_path: Path) -> None:
    launch = launch_of(tmp_path)
    for changed in (
        replace(launch, label='x" where="/tmp'),
        replace(launch, superlink="superlink.example.org"),
        replace(launch, superlink=":9"),
    ):
        with pytest.raises(SettingInvalid):
            check_site(changed)


def link_of(folder: Path) -> LinkLaunch:
    make_certificates(folder / "certificates", ["superlink.example.org"])
    return LinkLaunch(
        folder=folder / "link", certificates=folder / "certificates", host="127.0.0.1",
        port=0, control_port=1,
    )  # fmt: skip


@pytest.fixture
def free_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which ports are free is not what is tested here."""
    monkeypatch.setattr("fedassay.engines.flower.launch_link._check_free", lambda *_: None)


@pytest.mark.usefixtures("free_ports")
def test_a_link_that_is_not_safe_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = link_of(tmp_path)
    check_link(launch)
    check_programs(launch.folder / "bin", LINK_PROGRAMS)
    assert launch.folder.stat().st_mode & 0o077 == 0
    key = launch.certificates / "server.key"
    key.chmod(0o644)
    with pytest.raises(FileInvalid, match="chmod go-rwx"):
        check_link(launch)
    key.chmod(0o600)
    rewrite(launch.folder / "bin" / "flwr-serverapp", "link_lock", "server_app")
    with pytest.raises(FileInvalid, match="flwr-serverapp"):
        check_link(launch)
    for name, days in (("old", -1), ("other", 365)):
        monkeypatch.setattr(credentials, "CERTIFICATE_DAYS", days)
        monkeypatch.setattr(credentials, "_CLOCK_SLACK", timedelta(days=9))
        make_certificates(tmp_path / name, ["superlink.example.org"])
    old = LinkLaunch(folder=tmp_path / "l2", certificates=tmp_path / "old", port=2, control_port=1)
    with pytest.raises(FileInvalid, match="in date"):
        check_link(old)
    (tmp_path / "old" / "server.crt").write_bytes((tmp_path / "other" / "server.crt").read_bytes())
    with pytest.raises(FileInvalid, match=r"ca\.crt signed"):
        check_link(old)


def test_a_link_needs_two_ports_and_free_ones(tmp_path: Path) -> None:
    launch = link_of(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        busy = LinkLaunch(folder=launch.folder, certificates=launch.certificates, control_port=port)
        with pytest.raises(SettingInvalid, match="cannot be listened on"):
            check_link(busy)
    same = LinkLaunch(folder=launch.folder, certificates=launch.certificates, control_port=8443)
    with pytest.raises(SettingInvalid, match="two ports"):
        check_link(same)
    assert listening("192.0.2.7:8443") == ("192.0.2.7", 8443)
    for wrong in ("8443", ":8443", "host:", "host:99999", "host:x"):
        with pytest.raises(SettingInvalid):
            listening(wrong)


def test_nothing_of_the_shell_reaches_flower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "FLWR_INTERNAL_GRPC_CONTROL_API",
        "FLWR_INTERNAL_GRPC_FLEET_API", "FLWR_SUPERGRID_API_URL", "HTTPS_PROXY", "ALL_PROXY",
    ):  # fmt: skip
        monkeypatch.setenv(name, "1")
    found = clean_environment(tmp_path / "bin", tmp_path)
    assert found["PATH"] == str(tmp_path / "bin")
    assert not [name for name in found if name.startswith(("PYTHON", "LD_", "FLWR_INTERNAL"))]
    assert not [name for name in found if "PROXY" in name.upper() or "SUPERGRID" in name]


def test_a_program_hears_no_python_variable_and_no_other_package(tmp_path: Path) -> None:
    make_programs(tmp_path / "bin", SITE_PROGRAMS)
    evil = tmp_path / "evil"
    (evil / "fedassay").mkdir(parents=True)
    (evil / "fedassay" / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (evil / "sitecustomize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    done = subprocess.run(
        [tmp_path / "bin" / "flwr-model"],
        env={"PYTHONPATH": str(evil), "PATH": ""},
        cwd=evil,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.startswith("fedassay: declined a task of another kind.")
    assert not (tmp_path / "ran").exists()


def test_a_secret_is_new_at_every_start_and_nobody_elses(tmp_path: Path) -> None:
    first = fresh_secret(tmp_path / "secret").read_bytes()
    second = fresh_secret(tmp_path / "secret").read_bytes()
    assert len(first) == 32
    assert first != second
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_the_extra_installs_what_was_tested() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (flower,) = [item for item in extras["optional-dependencies"]["flower"] if "flwr" in item]
    assert TESTED == ("1.41.",)
    assert flower == "flwr>=1.41,<1.42"


def test_the_app_in_the_wheel_is_the_one_to_copy(tmp_path: Path) -> None:
    example = ROOT / "examples" / "flower"
    for path, content in app_files().items():
        assert (example / path).read_bytes() == content, path
    write_app(tmp_path / "app")
    assert (tmp_path / "app" / "fedassay_flower" / "client_app.py").is_file()
    with pytest.raises(FileInvalid, match="never written over"):
        write_app(tmp_path / "app")


def test_commands_write_app_and_programs(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["federation", "app", str(tmp_path / "app"), "--quiet"])
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "app" / "pyproject.toml").is_file()
    folder = launch_of(tmp_path).folder
    (folder / "bin" / "flwr-clientapp").write_text("#!/bin/sh\n")
    result = CliRunner().invoke(cli, ["federation", "programs", str(folder), "--json"])
    assert result.exit_code == 0
    check_programs(folder / "bin", SITE_PROGRAMS)
