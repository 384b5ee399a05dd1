"""Messages with counters, and messages that must be refused, byte by byte."""

import struct
import zlib
from typing import Any

from fedassay import Survey
from tests.vectors.surveys import LOCAL, OTHERS

REPORT_ID = bytes(range(16))
TREE = OTHERS["leaves that the fan-outs do not fill"]
NOISY = OTHERS["distributed, each level pays"]
UNARY = LOCAL["oue, bits that do not fill their bytes"]
VALUES = LOCAL["grr, empty clients"]


def message(
    survey: Survey,
    body: bytes,
    items: int,
    *,
    encoding: int,
    level: int,
    magic: bytes = b"FASR",
    version: int = 2,
    reserved: int = 0,
) -> bytes:
    """A message with whatever is asked for in its header."""
    framed = (
        magic
        + bytes([version, encoding, level, reserved])
        + survey.fingerprint
        + REPORT_ID
        + struct.pack("<I", items)
        + body
    )
    return framed + struct.pack("<I", zlib.crc32(framed))


def good(name: str, survey: Survey, counters: list[int], sent: bytes) -> dict[str, Any]:
    return {
        "name": name,
        "survey": survey.to_json(),
        "level": None,
        "report_id": REPORT_ID.hex(),
        "counters": counters,
        "bytes": sent.hex(),
    }


def bad(name: str, survey: Survey, sent: bytes, says: str) -> dict[str, Any]:
    return {"name": name, "survey": survey.to_json(), "bytes": sent.hex(), "says": says}


def report_vectors() -> dict[str, list[dict[str, Any]]]:
    width = TREE.hierarchy.width
    few = [0] * width
    few[1], few[width - 1] = 7, -3
    nearly_empty = message(TREE, struct.pack(f"<{width}i", *few), width, encoding=0, level=255)
    noisy = [(-1) ** i * i**3 for i in range(NOISY.hierarchy.width)]
    counters = struct.pack(f"<{len(noisy)}i", *noisy)
    full = message(NOISY, counters, len(noisy), encoding=0, level=255)
    nothing = message(TREE, bytes(4 * width), width, encoding=0, level=255)
    row = bytes([1, 0, 0, 2])
    unary = message(UNARY, row, 1, encoding=2, level=0)
    value = struct.pack("<I", 6)
    return {
        "good": [
            good("few counters, and the zeros too", TREE, few, nearly_empty),
            good("many counters", NOISY, noisy, full),
            good("zeros alone", TREE, [0] * width, nothing),
        ],
        "bad": [
            bad("cut short", UNARY, unary[:63], "cut short"),
            bad("a byte is missing", UNARY, unary[:-1], "as long as its header says"),
            bad("a byte too many", UNARY, unary + b"\0", "as long as its header says"),
            bad("a bit fell over", UNARY, unary[:60] + b"\3" + unary[61:], "checksum"),
            bad("another file", UNARY, message(UNARY, row, 1, encoding=2, level=0, magic=b"FASA"),
                "begins with FASR"),
            bad("version 1", UNARY, message(UNARY, row, 1, encoding=2, level=0, version=1),
                "report version 2"),
            bad("another survey", UNARY, message(VALUES, value, 1, encoding=2, level=0),
                "the report answers"),
            bad("the reserved byte is used", UNARY,
                message(UNARY, row, 1, encoding=2, level=0, reserved=1), "reserved byte"),
            bad("a level that is not there", UNARY, message(UNARY, row, 1, encoding=2, level=1),
                "header's level"),
            bad("counters where rows belong", UNARY, message(UNARY, row, 1, encoding=0, level=0),
                "header's encoding"),
            bad("rows where counters belong", TREE, message(TREE, row, 1, encoding=2, level=255),
                "header's encoding"),
            bad("one level where all belong", TREE,
                message(TREE, bytes(4 * width), width, encoding=0, level=0),
                "header's level"),
            bad("too many rows", UNARY, message(UNARY, row, 2**20 + 1, encoding=2, level=0),
                "has at most"),
            bad("bits past the last cell", UNARY,
                message(UNARY, bytes([0, 0, 0, 4]), 1, encoding=2, level=0), "past the last cell"),
            bad("a value out of reach", VALUES,
                message(VALUES, struct.pack("<I", 7), 1, encoding=2, level=0), "lie below 7"),
            bad("a counter too few", NOISY,
                message(NOISY, bytes(4 * 39), 39, encoding=0, level=255), "counters"),
            bad("zeros left out", TREE, message(TREE, b"", 0, encoding=0, level=255), "counters"),
            bad("counters as pairs", TREE,
                message(TREE, struct.pack("<IiIi", 1, 7, 5, 1), 2, encoding=1, level=255),
                "header's encoding"),
        ],
    }  # fmt: skip
