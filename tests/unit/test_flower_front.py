"""The front passes on the calls of a site, and nothing that is said in another way."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fedassay.engines.flower.credentials import make_certificates
from fedassay.engines.flower.front import CALLS, Front, Limits, Refused, read_head

MOST = 1000


def head(line: str = "POST /v1/fleet/get-run HTTP/1.1", *headers: str) -> bytes:
    return "\r\n".join([line, *headers, "", ""]).encode("latin-1")


def test_each_call_of_a_site_is_passed_on() -> None:
    assert len(CALLS) == 10
    for call in CALLS:
        line = f"POST /v1/fleet/{call} HTTP/1.1"
        request = read_head(head(line, "Content-Length: 7", "X-Flower: a b", "Host: h"), MOST)
        assert request.path == f"/v1/fleet/{call}"
        assert request.length == 7
        assert request.headers == ((b"x-flower", b"a b"),)


@pytest.mark.parametrize(
    ("status", "line", "headers"),
    [
        (404, "GET /v1/fleet/get-run HTTP/1.1", ["content-length: 0"]),
        (404, "POST /v1/fleet/register-node HTTP/1.1", ["content-length: 0"]),
        (404, "POST /v1/control/start-run HTTP/1.1", ["content-length: 0"]),
        (404, "POST /v1/runtime/acquire-task HTTP/1.1", ["content-length: 0"]),
        (404, "POST /v1/fleet/%67et-run HTTP/1.1", ["content-length: 0"]),
        (404, "POST /v1/fleet/get-run?x HTTP/1.1", ["content-length: 0"]),
        (404, "POST /v1/fleet/get-run/ HTTP/1.1", ["content-length: 0"]),
        (404, "POST https://h/v1/fleet/get-run HTTP/1.1", ["content-length: 0"]),
        (400, "POST /v1/fleet/get-run HTTP/1.0", ["content-length: 0"]),
        (400, "POST  /v1/fleet/get-run HTTP/1.1", ["content-length: 0"]),
        (400, "POST /v1/fleet/get-run", ["content-length: 0"]),
        (411, "POST /v1/fleet/get-run HTTP/1.1", []),
        (411, "POST /v1/fleet/get-run HTTP/1.1", ["transfer-encoding: chunked"]),
        (
            411,
            "POST /v1/fleet/get-run HTTP/1.1",
            ["content-length: 3", "transfer-encoding: chunked"],
        ),
        (411, "POST /v1/fleet/get-run HTTP/1.1", ["content-length: 3", "content-length: 4"]),
        (400, "POST /v1/fleet/get-run HTTP/1.1", ["content-length: -1"]),
        (400, "POST /v1/fleet/get-run HTTP/1.1", ["content-length: 0x10"]),
        (400, "POST /v1/fleet/get-run HTTP/1.1", ["content-length : 3"]),
        (400, "POST /v1/fleet/get-run HTTP/1.1", ["content-length: 3", " folded: x"]),
        (400, "POST /v1/fleet/get-run HTTP/1.1", ["content-length: 3", "a: b\nc: d"]),
        (413, "POST /v1/fleet/get-run HTTP/1.1", ["content-length: 1001"]),
        (400, "POST /v1/fleet/get-run HTTP/1.1", ["content-length: 9999999999999"]),
    ],
)
def test_what_is_said_in_another_way_is_refused(status: int, line: str, headers: list[str]) -> None:
    with pytest.raises(Refused) as refusal:
        read_head(head(line, *headers), MOST)
    assert refusal.value.status == status


Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


def through_a_front(folder: Path, limits: Limits, *clients: Client) -> tuple[list[bytes], bytes]:
    """What clients hear through a real front with TLS, and all that arrived behind it."""
    make_certificates(folder, ["127.0.0.1"])
    arrived = bytearray()
    tasks: set[asyncio.Task[None]] = set()

    async def behind(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while True:
                said = await reader.readuntil(b"\r\n\r\n")
                length = int(said.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                arrived.extend(said + await reader.readexactly(length))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx-kept: 1\r\n\r\nback")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def run() -> list[bytes]:
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server.load_cert_chain(folder / "server.crt", folder / "server.key")
        backend = await asyncio.start_server(behind, "127.0.0.1", 0, ssl=server)
        hidden = backend.sockets[0].getsockname()[1]
        # A port that was free a moment ago.
        probe = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = probe.sockets[0].getsockname()[1]
        probe.close()
        await probe.wait_closed()
        until = asyncio.Event()
        front = asyncio.create_task(
            Front(folder, hidden, limits).serve("127.0.0.1", port, until=until)
        )
        context = ssl.create_default_context(cafile=folder / "ca.crt")

        async def one(client: Client) -> bytes:
            for _ in range(100):
                with suppress(ConnectionRefusedError):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                    break
                await asyncio.sleep(0.05)
            try:
                return await asyncio.wait_for(client(reader, writer), 120)
            except ConnectionError:
                return b""
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

        heard = await asyncio.gather(*(one(client) for client in clients))
        until.set()
        await front
        backend.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return list(heard)

    return asyncio.run(run()), bytes(arrived)


def sends(content: bytes, *, answers: int = 1) -> Client:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(content)
        await writer.drain()
        heard = b""
        for _ in range(answers):
            answer = await reader.readuntil(b"\r\n\r\n")
            if b"content-length: 4" in answer:
                answer += await reader.readexactly(4)
            heard += answer
        return heard

    return client


async def waits_for_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"POST /v1/fleet/get-run HTTP/1.1\r\ncontent-le")
    await writer.drain()
    return await reader.read()


def test_requests_follow_one_another_and_come_out_as_they_went_in(tmp_path: Path) -> None:
    call = head("POST /v1/fleet/get-run HTTP/1.1", "content-length: 3", "x-node: 7") + b"abc"
    (heard,), arrived = through_a_front(tmp_path, Limits(), sends(call + call, answers=2))
    assert heard.count(b"200 OK") == heard.count(b"back") == heard.count(b"x-kept: 1") == 2
    assert arrived.count(b"POST /v1/fleet/get-run HTTP/1.1") == 2
    assert arrived.count(b"abc") == arrived.count(b"x-node: 7") == 2


def test_nothing_of_a_refused_request_arrives(tmp_path: Path) -> None:
    smuggled = head("POST /v1/control/start-run HTTP/1.1", "content-length: 0")
    calls = [
        smuggled,
        head("POST /v1/fleet/get-run HTTP/1.1", "transfer-encoding: chunked") + b"0\r\n\r\n",
        head("POST /v1/fleet/get-run HTTP/1.1", "content-length: 2000"),
    ]
    heard, arrived = through_a_front(
        tmp_path, Limits(body_bytes=MOST), *(sends(call) for call in calls)
    )
    assert [line.split()[1] for line in heard] == [b"404", b"411", b"413"]
    assert arrived == b""


def test_a_body_cannot_hide_another_request(tmp_path: Path) -> None:
    hidden = head("POST /v1/control/start-run HTTP/1.1", "content-length: 0")
    call = head("POST /v1/fleet/get-run HTTP/1.1", "content-length: 0") + hidden
    (heard,), arrived = through_a_front(tmp_path, Limits(), sends(call, answers=2))
    assert [line.split()[0] for line in heard.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404"]
    assert b"control" not in arrived


def test_slow_and_long_winded_clients_are_left(tmp_path: Path) -> None:
    limits = Limits(head_seconds=0.5, head_bytes=512)
    long_winded = sends(b"POST /v1/fleet/get-run HTTP/1.1\r\n" + b"x: y\r\n" * 1000 + b"\r\n")

    async def refused(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        with suppress(asyncio.IncompleteReadError):
            return await long_winded(reader, writer)
        return b""

    heard, arrived = through_a_front(tmp_path, limits, waits_for_the_end, refused)
    assert heard == [b"", b""]
    assert arrived == b""


def test_one_address_has_only_so_many_connections(tmp_path: Path) -> None:
    """Nobody speaks before all who are to be turned away have been, however long that takes."""
    call = head("POST /v1/fleet/get-run HTTP/1.1", "content-length: 0")

    def crowd(most: int, turned_away: int) -> int:
        left = turned_away

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
            nonlocal left
            while left:
                with suppress(TimeoutError):
                    assert await asyncio.wait_for(reader.read(1), 0.02) == b""
                    left -= 1
                    return b""
            with suppress(asyncio.IncompleteReadError):
                return await sends(call)(reader, writer)
            return b""

        folder, limits = tmp_path / str(most), Limits(connections_per_address=most)
        heard, _ = through_a_front(folder, limits, late, late, late, late)
        return sum(b"200 OK" in answer for answer in heard)

    assert crowd(2, turned_away=2) == 2
    assert crowd(8, turned_away=0) == 4
