"""Real processes with TLS: strangers at the front, and a server that asks for too much."""

import shutil
import socket
import ssl
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from examples.four_hospitals.processes import APP, Federation, command, leftovers

from fedassay import Grid, Hierarchy, Polya, Survey
from fedassay.engines.flower.credentials import make_certificates, make_node_key
from fedassay.ledger import Charge, Ledger
from fedassay.mechanisms import Privacy
from tests.surveys import local_survey

SITES = ("north", "east")


def fedassay(*arguments: object) -> None:
    words = [sys.executable, "-m", "fedassay", *map(str, arguments)]
    subprocess.run(words, check=True, capture_output=True, timeout=300)


def made_by_the_walk(folder: Path) -> dict[str, dict[str, str]]:
    """Sites made by the commands of docs/four-hospitals.md, with no limit named."""
    for name in SITES:
        scores = folder / f"{name}-scores"
        scores.mkdir()
        rng = np.random.default_rng(len(name))
        rows = "".join(f"{score},{int(rng.random() < score)}\n" for score in rng.random(300))
        (scores / "scores.csv").write_text(f"risk,outcome\n{rows}")
        fedassay("federation", "site", folder / name, "--name", name, "--data-folder", scores)
    members = [folder / name / "member.json" for name in SITES]
    fedassay("federation", "roster", *members, "-o", folder / "roster.json")
    for name in SITES:
        shutil.copy(folder / "roster.json", folder / name / "roster.json")
    return {
        name: {
            "data": "scores.csv",
            "score": "risk",
            "label": "outcome",
            "where": str(folder / name),
        }
        for name in SITES
    }


def looting_app(folder: Path) -> Path:
    """An app whose ServerApp leaves a trace where it runs."""
    app = folder / "loot-app"
    shutil.copytree(APP, app)
    (app / "fedassay_flower" / "server_app.py").write_text(
        "from fedassay.engines.flower.server_app import app\n"
        "__all__ = ['app']\n"
        f"open({str(folder / 'loot')!r}, 'w').close()\n"
    )
    return app


def status(federation: Federation, request: bytes, *, port: int | None = None) -> bytes:
    """The first line of what a raw request is answered with."""
    context = ssl.create_default_context(cafile=federation.certificates / "ca.crt")
    with (
        socket.create_connection(("127.0.0.1", port or federation.port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as channel,
    ):
        channel.sendall(request)
        return channel.recv(4096).split(b"\r\n")[0]


def post(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n".encode()


def flwr(home: Path, federation: Federation, *arguments: object) -> str:
    done = subprocess.run(
        [command("flwr"), *map(str, arguments)],
        env=federation.environment_of(home),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def distributed(epsilon: Fraction, *, colluders: int = 0) -> Survey:
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(8),
        hierarchy=Hierarchy.flat(8),
        mechanisms=(Polya(epsilon, 1, 2 - colluders),),
        minimum_reports=2,
        colluders=colluders,
    )


CONTROL = (
    "/v1/control/register-node", "/v1/control/start-run", "/v1/control/list-runs",
    "/v1/runtime/acquire-task", "/v1/fleet/register-node", "/health", "/docs", "/openapi.json",
    "/v1/fleet/../control/register-node", "/v1/fleet/%2e%2e/control/register-node",
    "//v1/fleet/get-run", "/v1/fleet/get-run?x=1",
)  # fmt: skip


def test_strangers_and_hostile_questions_are_refused_over_real_processes(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certificates", ["superlink.example.org"])
    configs = made_by_the_walk(tmp_path)
    make_node_key(tmp_path / "stranger.key")
    with Federation(tmp_path) as federation:
        federation.start_superlink()
        # A stranger has the address and the public certificate.
        stranger = federation.home_of("stranger", federation.address)
        key = tmp_path / "stranger.key.pub"
        said = flwr(stranger, federation, "supernode", "register", key, "hospitals")
        assert "registered successfully" not in said
        app = looting_app(tmp_path)
        assert federation.run({}, app=app, home=stranger).run_id == ""
        for path in CONTROL:
            assert status(federation, post(path)) == b"HTTP/1.1 404 Not Found", path
        # A site's call is passed on, and refused by the SuperLink itself without a node's key.
        passed_on = status(federation, post("/v1/fleet/activate-node")).split()[1]
        assert passed_on in (b"400", b"401", b"415")
        # The twin: the same calls are served where the analyst sits, and nowhere else.
        answered = status(federation, b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n",
                          port=federation.control_port)  # fmt: skip
        assert answered.split()[1] == b"200"

        federation.register(*(tmp_path / name / "node.key.pub" for name in SITES))
        for name, config in configs.items():
            federation.start_site(name, tmp_path / name / "node.key", config)
        federation.wait_for_sites(*SITES)
        hostile = {
            "epsilon 50": ("local", local_survey(Fraction(50), cells=2**20, kinds="grr")),
            "asks for epsilon 50": ("distributed", distributed(Fraction(50))),
            "withstands 0": ("distributed", distributed(Fraction(1), colluders=0)),
        }
        for number, (word, (privacy, survey)) in enumerate(hostile.items()):
            survey.save(tmp_path / f"hostile-{number}.json")
            run = federation.run(
                {
                    "privacy": privacy,
                    "survey": str(tmp_path / f"hostile-{number}.json"),
                    "roster": str(tmp_path / "roster.json"),
                    "sites": 2,
                    "output": str(tmp_path / "assessment.json"),
                },
                app=app,
            )
            assert run.failed
            for name in SITES:
                line = f"Without site {name}: declined stage"
                assert line in run.log
                assert "SurveyRefused: this client" in federation.log(name)
                # The site's own log says why; the server learns that it declined, no more.
                assert word in federation.log(name)
            assert "SiteDeclined" in run.log
            assert "SurveyRefused" not in run.log
            # One line says why.
            assert "The run failed. " in run.log
            assert "Traceback" not in run.log + federation.log("superlink")
        for name in SITES:
            entries = Ledger(tmp_path / name / "ledger.db").entries()
            assert not any(isinstance(entry.content, Charge) for entry in entries)
            assert (tmp_path / name).stat().st_mode & 0o077 == 0
        # Not even a run of the coordinator's own analyst brings code along.
        assert not (tmp_path / "loot").exists()
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "assessment.json").exists()


@pytest.mark.parametrize("missing", ["bin/flwr-clientapp", "roster.json", "site.toml"])
def test_a_site_does_not_start_without_what_keeps_it_safe(tmp_path: Path, missing: str) -> None:
    make_certificates(tmp_path / "certificates", ["superlink.example.org"])
    config = made_by_the_walk(tmp_path)["north"]
    (tmp_path / "north" / missing).unlink()
    with Federation(tmp_path) as federation:
        federation.start_site("north", tmp_path / "north" / "node.key", config)
        assert federation.wait_for_end("north") == 2
        said = federation.log("north")
    assert said.startswith("FileInvalid: ")
    assert "Traceback" not in said
    assert "SuperNode" not in said
