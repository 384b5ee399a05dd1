"""The only door of a SuperLink that strangers can reach: ten calls of a site, and nothing else.

Flower serves what a site needs, what an analyst needs and what starts code on one port, and only
the first asks who is there. The SuperLink therefore listens on the loopback interface; this front
ends TLS, reads one plain request at a time within its limits, and passes on those of a site.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fedassay.extras import needed_for

with needed_for("a federation over Flower"):
    import httpx

CALLS = (
    "activate-node", "deactivate-node", "send-node-heartbeat", "pull-messages", "push-messages",
    "get-run", "get-fab", "push-object", "pull-object", "confirm-message-received",
)  # fmt: skip
"""What a SuperNode asks of its SuperLink; all of them but with its registered key are refused."""
_PATHS = {f"/v1/fleet/{call}".encode(): f"/v1/fleet/{call}" for call in CALLS}
_OURS = frozenset(
    (b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te",
     b"trailer", b"transfer-encoding", b"upgrade", b"host", b"content-length", b"authorization",
     b"expect", b"content-encoding", b"server", b"date", b"accept-encoding")
)  # fmt: skip
"""Headers that belong to one connection, and are not passed on."""
_CHUNK_BYTES = 2**16
_REASONS = {
    400: "Bad Request", 404: "Not Found", 411: "Length Required", 413: "Content Too Large",
    502: "Bad Gateway",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """What one stranger, and all together, may ask of the front."""

    body_bytes: int = 64 * 2**20
    head_bytes: int = 2**14
    head_seconds: float = 30.0
    """For a connection to say what it wants, and between two requests."""
    body_seconds: float = 120.0
    """For a request to be read, passed on and answered."""
    handshake_seconds: float = 10.0
    connections: int = 512
    connections_per_address: int = 64


@dataclass(frozen=True, slots=True)
class Request:
    """A call that may be passed on."""

    path: str
    headers: tuple[tuple[bytes, bytes], ...]
    length: int


class Refused(Exception):
    """A request that ends here, with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def read_head(head: bytes, most_bytes: int) -> Request:
    """The call that a request's head asks for, or `Refused`.

    The path is compared as it came, so that no encoding or dots can hide another one, and
    there is one way to say how long a body is, so that nothing can hide behind it.
    """
    line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3 or words[2] != b"HTTP/1.1":
        raise Refused(400)
    if words[0] != b"POST" or words[1] not in _PATHS:
        raise Refused(404)
    headers = [_header(item) for item in lines]
    lengths = [value for name, value in headers if name == b"content-length"]
    if any(name == b"transfer-encoding" for name, _ in headers) or len(lengths) != 1:
        raise Refused(411)
    if not lengths[0].isdigit() or len(lengths[0]) > 12:
        raise Refused(400)
    length = int(lengths[0])
    if length > most_bytes:
        raise Refused(413)
    kept = tuple((name, value) for name, value in headers if name not in _OURS)
    return Request(_PATHS[words[1]], kept, length)


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    token = name.replace(b"-", b"").replace(b"_", b"")
    if not colon or not token.isalnum() or any(byte < 32 and byte != 9 for byte in value):
        raise Refused(400)
    return name.lower(), value.strip(b" \t")


@dataclass(slots=True)
class Front:
    """Listens for sites, and asks the SuperLink behind it."""

    certificates: Path
    """A folder with `ca.crt`, `server.crt` and `server.key`."""
    backend_port: int
    limits: Limits = field(default_factory=Limits)
    _open: Counter[str] = field(default_factory=Counter)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, host: str, port: int, *, until: asyncio.Event) -> None:
        """Listen until the event comes."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificates / "server.crt", self.certificates / "server.key")
        async with self._backend() as backend:
            server = await asyncio.start_server(
                lambda reader, writer: self._connection(reader, writer, backend),
                host,
                port,
                ssl=context,
                limit=self.limits.head_bytes,
                ssl_handshake_timeout=self.limits.handshake_seconds,
            )
            await until.wait()
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _backend(self) -> httpx.AsyncClient:
        context = ssl.create_default_context(cafile=self.certificates / "ca.crt")
        return httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{self.backend_port}",
            verify=context,
            trust_env=False,
            follow_redirects=False,
            timeout=self.limits.body_seconds,
            limits=httpx.Limits(max_connections=self.limits.connections),
        )

    async def _connection(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        backend: httpx.AsyncClient,
    ) -> None:
        """Answer one connection's requests, one after another."""
        if (task := asyncio.current_task()) is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        address = str((writer.get_extra_info("peername") or ("",))[0])
        most = self.limits.connections_per_address
        full = self._open.total() >= self.limits.connections or self._open[address] >= most
        self._open[address] += 1
        try:
            while not full and await self._request(reader, writer, backend):
                pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # Whoever is slow, long-winded or gone hears nothing.
            pass
        finally:
            self._open[address] -= 1
            self._open += Counter()
            writer.close()
            with suppress(OSError, TimeoutError):
                await writer.wait_closed()

    async def _request(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        backend: httpx.AsyncClient,
    ) -> bool:
        """Answer one request; returns whether another may follow."""
        async with asyncio.timeout(self.limits.head_seconds):
            head = await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(self.limits.body_seconds):
            try:
                request = read_head(head, self.limits.body_bytes)
            except Refused as refusal:
                await _answer(writer, refusal.status, {}, b"")
                return False
            try:
                reply = await backend.post(
                    request.path,
                    content=_body(reader, request.length),
                    headers=[*request.headers, (b"content-length", b"%d" % request.length)],
                )
            except httpx.HTTPError:
                await _answer(writer, 502, {}, b"")
                return False
            kept = {
                name.lower(): value
                for name, value in reply.headers.raw
                if name.lower() not in _OURS
            }
            await _answer(writer, reply.status_code, kept, reply.content)
            return True


async def _body(reader: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    """A body as it comes: the front never holds all of it."""
    left = length
    while left:
        piece = await reader.read(min(left, _CHUNK_BYTES))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        yield piece


async def _answer(
    writer: asyncio.StreamWriter, status: int, headers: Mapping[bytes, bytes], body: bytes
) -> None:
    lines = [b"HTTP/1.1 %d %s" % (status, _REASONS.get(status, "OK").encode())]
    lines += [name + b": " + value for name, value in headers.items()]
    lines.append(b"content-length: %d" % len(body))
    if status in _REASONS:
        lines.append(b"connection: close")
    writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
    await writer.drain()
