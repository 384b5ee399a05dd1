"""Certificates that a TLS client accepts, keys that Flower reads, programs that refuse."""

import socket
import ssl
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from fedassay.engines.flower.credentials import make_certificates, make_node_key
from fedassay.engines.flower.programs import make_programs
from fedassay.engines.flower.site_lock import SITE_PROGRAMS
from fedassay.errors import FileInvalid, SettingInvalid


def handshake(folder: Path, host: str) -> None:
    """A real TLS handshake over a pair of sockets."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.crt", folder / "server.key")
    client = ssl.create_default_context(cafile=folder / "ca.crt")
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    here, there = socket.socketpair()
    here.settimeout(10)
    there.settimeout(10)

    def serve() -> None:
        try:
            server.wrap_socket(there, server_side=True).close()
        except OSError:
            there.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        client.wrap_socket(here, server_hostname=host).close()
    finally:
        here.close()
        thread.join()


def test_certificates_are_for_the_hosts_they_name_and_no_others(tmp_path: Path) -> None:
    make_certificates(tmp_path, ["superlink.example.org", "127.0.0.1", "::1"])
    for host in ("superlink.example.org", "127.0.0.1", "::1"):
        handshake(tmp_path, host)
    for host in ("other.example.org", "127.0.0.2", "example.org"):
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(tmp_path, host)


def test_another_authority_is_not_accepted(tmp_path: Path) -> None:
    make_certificates(tmp_path / "a", ["localhost"])
    make_certificates(tmp_path / "b", ["localhost"])
    (tmp_path / "a" / "ca.crt").write_bytes((tmp_path / "b" / "ca.crt").read_bytes())
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path / "a", "localhost")


@pytest.mark.parametrize("hosts", [[], [""], ["a"] * 101, ["naïve host"]])
def test_hosts_are_names_or_addresses(tmp_path: Path, hosts: list[str]) -> None:
    with pytest.raises(SettingInvalid):
        make_certificates(tmp_path, hosts)
    assert list(tmp_path.iterdir()) == []


def test_secrets_are_for_their_owner_and_never_written_over(tmp_path: Path) -> None:
    make_certificates(tmp_path, ["localhost"])
    make_node_key(tmp_path / "node.key")
    for name in ("server.key", "node.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileInvalid, match="never written over"):
        make_certificates(tmp_path, ["localhost"])
    with pytest.raises(FileInvalid, match="never written over"):
        make_node_key(tmp_path / "node.key")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_node_keys_are_nist_curves_in_openssh_format(tmp_path: Path) -> None:
    make_node_key(tmp_path / "node.key")
    private = load_ssh_private_key((tmp_path / "node.key").read_bytes(), None)
    public = load_ssh_public_key((tmp_path / "node.key.pub").read_bytes())
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert private.public_key() == public
    assert private.curve.name == "secp384r1"


def test_tasks_of_another_kind_end_at_once(tmp_path: Path) -> None:
    make_programs(tmp_path, SITE_PROGRAMS)
    programs = sorted(path.name for path in tmp_path.iterdir())
    assert programs == [
        "flwr-agentapp", "flwr-clientapp", "flwr-connector", "flwr-model", "flwr-serverapp",
        "flwr-simulation",
    ]  # fmt: skip
    done = subprocess.run(
        [tmp_path / "flwr-agentapp", "--token", "t"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("fedassay: declined a task of another kind.")


def test_programs_of_flower_that_a_supernode_starts_are_all_replaced() -> None:
    from flwr.supercore.constant import TASK_TYPE_TO_COMMAND

    from fedassay.engines.flower.link_lock import LINK_PROGRAMS

    assert set(TASK_TYPE_TO_COMMAND.values()) == set(SITE_PROGRAMS) == set(LINK_PROGRAMS)


def test_an_untested_flower_is_refused() -> None:
    code = (
        "import flwr.supercore.version as v; v.package_version = '1.99.0'\n"
        "from fedassay.engines.flower.site_lock import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nothing is answered" in done.stderr
    assert "found 1.99.0" in done.stderr
