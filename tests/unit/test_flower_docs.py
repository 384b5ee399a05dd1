"""The commands of the walk-through exist, and those that are ours run."""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from examples.four_hospitals.processes import APP, command

from fedassay.engines.flower.settings import RunSettings
from tests.tables import ROOT

TEXT = (ROOT / "docs" / "four-hospitals.md").read_text()
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
]


def test_commands_of_the_walk_make_what_the_walk_says(tmp_path: Path) -> None:
    scores = tmp_path / "scores"
    scores.mkdir()
    ours = [line for line in COMMANDS if line.startswith("fedassay federation")]
    launched = [line for line in ours if "start-" in line]
    assert [line.split()[2] for line in launched] == ["start-link", "start-site"]
    ours = [line for line in ours if line not in launched]
    assert len(ours) == 4

    def run(line: str) -> str:
        words = shlex.split(line.replace("/srv/scores", str(scores)))
        done = subprocess.run(
            [command(words[0]), *words[1:]],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    certificates, site, roster, app = ours
    run(certificates)
    for name in ("north", "east", "south", "west", "clinic"):
        run(site.replace("/srv/fedassay", name).replace("--name north", f"--name {name}"))
    assert "5 sites, digest" in run(roster)
    run(app)
    assert (tmp_path / "app" / "pyproject.toml").is_file()
    made = {path.name for path in (tmp_path / "north").iterdir()}
    assert {"site.toml", "ledger.db", "node.key", "node.key.pub", "identity.pem"} <= made
    assert {"member.json", "bin"} <= made
    assert {path.name for path in (tmp_path / "certificates").iterdir()} == {
        "ca.crt", "server.crt", "server.key",
    }  # fmt: skip
    for name in made:
        assert name in TEXT or name.endswith(".mark")


@pytest.mark.parametrize("launcher", ["start-link", "start-site"])
def test_options_of_the_launchers_in_the_walk_exist(launcher: str) -> None:
    (line,) = [line for line in COMMANDS if launcher in line]
    done = subprocess.run(
        [command("fedassay"), "federation", launcher, "--help"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    options = re.findall(r" (--[a-z-]+)", line)
    assert len(options) > 1
    for option in options:
        assert option in done.stdout, option


@pytest.mark.parametrize("program", ["flower-superlink", "flower-supernode", "flower-superexec"])
def test_flowers_options_that_the_launchers_use_exist(program: str) -> None:
    folder = ROOT / "src/fedassay/engines/flower"
    source = (folder / "launch_link.py").read_text() + (folder / "launch_site.py").read_text()
    calls = re.findall(rf'flower_program\("{program}"\),(.*?)\)  # fmt', source, re.DOTALL)
    assert calls
    done = subprocess.run(
        [command(program), "--help"], capture_output=True, text=True, timeout=300, check=True
    )
    for option in re.findall(r'"(--[a-z-]+)"', "".join(calls)):
        assert option in done.stdout, option


def test_run_settings_in_the_walk_are_settings_of_the_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tomllib.loads((APP / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    lines = [line for line in COMMANDS if line.startswith("flwr run")]
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line)
        changes = tomllib.loads(words[words.index("--run-config") + 1].replace(" ", "\n"))
        assert set(changes) <= set(config)
        settings = RunSettings.from_config({**config, **changes})
        assert settings.sites == 5


def test_every_setting_of_the_app_is_read() -> None:
    config = tomllib.loads((APP / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    source = "".join(
        path.read_text() for path in (ROOT / "src/fedassay/engines/flower").glob("*.py")
    )
    for name in config:
        assert f'"{name}"' in source, name
