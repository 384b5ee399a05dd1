"""The commands of the walk-through exist, and those that are ours run."""

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
    assert len(ours) == 3

    def run(line: str) -> str:
        words = shlex.split(line.replace("/srv/scores", str(scores)))
        done = subprocess.run(
            [command(words[0]), *words[1:]],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    certificates, site, roster = ours
    run(certificates)
    for name in ("north", "east", "south", "west"):
        run(site.replace("/srv/fedassay", name).replace("--name north", f"--name {name}"))
    assert "4 sites, digest" in run(roster)
    made = {path.name for path in (tmp_path / "north").iterdir()}
    assert {"site.toml", "ledger.db", "node.key", "node.key.pub", "identity.pem"} <= made
    assert {"member.json", "bin"} <= made
    assert {path.name for path in (tmp_path / "certificates").iterdir()} == {
        "ca.crt", "server.crt", "server.key",
    }  # fmt: skip
    for name in made:
        assert name in TEXT or name.endswith(".mark")


@pytest.mark.parametrize("program", ["flower-superlink", "flower-supernode"])
def test_flowers_options_in_the_walk_exist(program: str) -> None:
    (line,) = [line for line in COMMANDS if f"{program} --" in line]
    done = subprocess.run(
        [command(program), "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    options = re.findall(r" (--[a-z-]+)", line)
    assert len(options) > 3
    for option in options:
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
        assert settings.sites == 4


def test_every_setting_of_the_app_is_read() -> None:
    config = tomllib.loads((APP / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    source = "".join(
        path.read_text() for path in (ROOT / "src/fedassay/engines/flower").glob("*.py")
    )
    for name in config:
        assert f'"{name}"' in source, name
