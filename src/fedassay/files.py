"""Files: canonical JSON, the one atomic write, the one fraction parser.

Whatever is read here is read as if a stranger had written it.
"""

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from fedassay.errors import FileInvalid, SettingInvalid

_E = TypeVar("_E", bound=Enum)

MAX_JSON_BYTES = 512 * 2**20
LARGEST_SAFE_INTEGER = 2**53 - 1
_FRACTION = re.compile(r"[0-9]{1,12}(/[1-9][0-9]{0,11})?")
_NUMBER = re.compile(
    r"-?([0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12})([eE]-?[0-9]{1,2})?|"
    r"[0-9]{1,12}/[1-9][0-9]{0,11}"
)


def canonical(content: object) -> bytes:
    """One byte string per content, the same in every language: RFC 8785.

    Keys are sorted by UTF-16 code units, nothing is padded, numbers are written as
    ECMAScript writes them.

    >>> canonical({"b": [1.0, 0.1, 1e-7], "a": None})
    b'{"a":null,"b":[1,0.1,1e-7]}'
    """
    try:
        return _canonical(content).encode()
    except UnicodeEncodeError as error:
        raise FileInvalid("texts must be valid Unicode; found half a character.") from error


def _canonical(content: object) -> str:
    if content is None or isinstance(content, bool):
        return {None: "null", True: "true", False: "false"}[content]
    if isinstance(content, str):
        return json.dumps(content, ensure_ascii=False)
    if isinstance(content, int):
        if abs(content) > LARGEST_SAFE_INTEGER:
            raise FileInvalid("whole numbers in JSON stay below 2^53; found a larger one.")
        return str(content)
    if isinstance(content, float):
        return number_text(content)
    if isinstance(content, Mapping):
        if not all(isinstance(name, str) for name in content):
            raise FileInvalid("names in JSON are texts; found another type.")
        rising = sorted(content, key=lambda name: name.encode("utf-16-be"))
        inside = (
            f"{json.dumps(name, ensure_ascii=False)}:{_canonical(content[name])}" for name in rising
        )
        return f"{{{','.join(inside)}}}"
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray | memoryview):
        return f"[{','.join(map(_canonical, content))}]"
    raise FileInvalid(f"JSON has no {type(content).__name__}.")


def number_text(value: float) -> str:
    """A number as ECMAScript writes it: the fewest digits that read back as the same double.

    >>> [number_text(x) for x in (0.0, -0.5, 1e21, 123456789012345680000.0, 5e-324)]
    ['0', '-0.5', '1e+21', '123456789012345680000', '5e-324']
    """
    if not isfinite(value):
        raise FileInvalid("JSON has no infinite or missing numbers; found one.")
    if value == 0.0:
        return "0"
    sign = "-" if value < 0.0 else ""
    # A numpy float has a repr of its own.
    mantissa, _, exponent = float.__repr__(abs(value)).partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    # The value is 0.digits x 10^point.
    leading = len(whole + part) - len(digits)
    point = len(whole) - leading + int(exponent or 0)
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return f"{sign}{digits}{'0' * (point - count)}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    shown = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{shown}e{point - 1:+d}"


def parse_fraction(text: str, name: str) -> Fraction:
    """Read 1, 0.5 or 1/3 exactly.

    >>> parse_fraction("0.1", "epsilon")
    Fraction(1, 10)
    """
    if not _NUMBER.fullmatch(text):
        raise SettingInvalid(f"{name} must be a number such as 1, 0.5 or 1/3; found {text[:40]!r}.")
    return Fraction(text)


def as_path(path: object) -> Path:
    """A path from a text or a Path; anything else raises."""
    if isinstance(path, str | os.PathLike) and str(path) and "\0" not in str(path):
        return Path(path)
    raise SettingInvalid(f"a path is a text or a pathlib.Path; found {path!r:.40}. Name a file.")


def read_json(
    path: Path, expected_format: str | tuple[str, ...], *, most: int = MAX_JSON_BYTES
) -> dict[str, Any]:
    """Read an object whose "format" is as expected; size is checked before reading."""
    return check_format(read_object(path, most=most), expected_format, str(path))


def read_object(path: Path, *, most: int = MAX_JSON_BYTES) -> object:
    """Read any JSON file of at most so many bytes."""
    return parse_json(read_bytes(path, most=most), str(path))


def read_bytes(path: Path, *, most: int) -> bytes:
    """Read a file of at most so many bytes, and never more."""
    try:
        with path.open("rb") as stream:
            # One byte more than allowed tells, whatever the file system says of the size.
            data = stream.read(most + 1)
    except OSError as error:
        raise FileInvalid(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    if len(data) > most:
        raise FileInvalid(
            f"{path}: such files are at most {most:,} bytes; this one is larger. "
            "This is probably another file."
        )
    return data


@dataclass(frozen=True, slots=True)
class JsonShape:
    """What a JSON text may hold at most; counted in its bytes, before anything is built of it.

    Four bytes of JSON can become two hundred of Python's. A bracket, quote or comma within a
    text counts too, so that no text with more of them than allowed passes.
    """

    nested: int
    """Lists and objects."""
    texts: int
    items: int

    def check(self, data: bytes, where: str) -> None:
        """Raise `FileInvalid` when there is more of anything."""
        counted = {
            "lists and objects": (data.count(b"[") + data.count(b"{"), self.nested),
            "texts": (data.count(b'"') // 2, self.texts),
            "items": (data.count(b","), self.items),
        }
        for what, (times, most) in counted.items():
            if times > most:
                raise FileInvalid(
                    f"{where}: such files have at most {most:,} {what}; found {times:,}. "
                    "This is probably another file."
                )


def parse_json(data: bytes, where: str) -> object:
    """Untrusted bytes as JSON: no constants beyond the standard, no name twice."""
    try:
        return json.loads(data, parse_constant=_refuse_constant, object_pairs_hook=_each_name_once)
    except (ValueError, RecursionError) as error:
        raise FileInvalid(
            f"{where}: not a JSON file, or cut short. Copy it again from its source."
        ) from error


def check_format(content: object, expected: str | tuple[str, ...], where: str) -> dict[str, Any]:
    """Return content if it is an object of this format and version, or of one of several."""
    known = (expected,) if isinstance(expected, str) else expected
    found = content.get("format") if isinstance(content, dict) else None
    if not isinstance(content, dict) or found not in known:
        raise FileInvalid(
            f'{where}: expected format "{known[-1]}"; found {_shown(found)}. '
            "Pass the right file, or use the fedassay version that wrote it."
        )
    return content


PRIVATE, PUBLIC = 0o600, 0o644


def write_json(path: Path, content: Mapping[str, Any], *, mode: int = PRIVATE) -> None:
    """Write a JSON file, whole or not at all."""
    write_whole(path, json.dumps(content, allow_nan=False).encode() + b"\n", mode=mode)


def write_whole(path: Path, *content: bytes, mode: int = PRIVATE) -> int:
    """Write whole or not at all: a crash leaves the old file in place; returns how many bytes.

    Unless `mode` says otherwise, only the owner may read the file. A name that somebody
    planted in the folder is neither followed nor used.
    """
    if not path.name:
        raise FileInvalid(f"{path}: this is a folder. Name a file.")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise FileInvalid(
            f"{path}: cannot be written ({error.strerror}). Choose a folder you may write to."
        ) from error
    return sum(map(len, content))


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Fields:
    """Typed access to one JSON object; anything unexpected is a `FileInvalid`."""

    def __init__(self, content: object, where: str) -> None:
        if not isinstance(content, dict):
            raise FileInvalid(f"{where}: expected an object; found {type(content).__name__}.")
        self._content = content
        self._where = where

    def get(self, name: str) -> Any:
        """A field that must be there."""
        if name not in self._content:
            raise FileInvalid(f'{self._where}: field "{name}" is missing. The file is incomplete.')
        return self._content[name]

    def has(self, *names: str) -> bool:
        """Whether any of these fields is there."""
        return any(name in self._content for name in names)

    def inside(self, name: str) -> "Fields":
        """An object within this one."""
        return Fields(self.get(name), f"{self._where}, {name}")

    def integer(self, name: str, low: int, high: int) -> int:
        """A whole number within limits."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise FileInvalid(
                f'{self._where}: "{name}" must be a whole number from {low} to {high}; '
                f"found {_shown(value)}."
            )
        return value

    def boolean(self, name: str) -> bool:
        """True or false."""
        value = self.get(name)
        if not isinstance(value, bool):
            raise FileInvalid(f'{self._where}: "{name}" must be true or false.')
        return value

    def text(self, name: str) -> str:
        """A short string."""
        value = self.get(name)
        if not isinstance(value, str) or len(value) > 1000:
            raise FileInvalid(f'{self._where}: "{name}" must be a short text.')
        return value

    def one_of(self, kinds: type[_E], name: str) -> _E:
        """The member of an enum whose value the field is."""
        known = {member.value: member for member in kinds}
        value = self.get(name)
        if not isinstance(value, str) or value not in known:
            raise FileInvalid(
                f'{self._where}: "{name}" is one of {", ".join(known)}; found {_shown(value)}.'
            )
        return known[value]

    def must_be(self, name: str, value: str) -> None:
        """A text that can be computed from the rest, and is."""
        if self.get(name) != value:
            raise FileInvalid(
                f'{self._where}: "{name}" must be "{value}", as the other fields have it; found '
                f"{_shown(self.get(name))}. The file was changed, or made by another rule."
            )

    def fraction(self, name: str) -> Fraction:
        """An exact rational, written "p/q" or "p"."""
        return self._fraction(name, self.get(name))

    def fractions(self, name: str, most: int) -> list[Fraction]:
        """A list of exact rationals."""
        value = self.get(name)
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise FileInvalid(f'{self._where}: "{name}" must be a list of at most {most} items.')
        return [self._fraction(name, item) for item in value]

    def _fraction(self, name: str, value: object) -> Fraction:
        if not isinstance(value, str) or not _FRACTION.fullmatch(value):
            raise FileInvalid(
                f'{self._where}: "{name}" must be a fraction such as "1/3"; found {_shown(value)}.'
            )
        return Fraction(value)

    def texts(self, name: str, most: int) -> list[str]:
        """A list of texts, each once."""
        value = self.get(name)
        if (
            not isinstance(value, list)
            or len(value) > most
            or not all(isinstance(item, str) for item in value)
            or len(set(value)) < len(value)
        ):
            raise FileInvalid(
                f'{self._where}: "{name}" must be a list of at most {most} texts, each once.'
            )
        return value

    def integers(self, name: str, most: int, bits: int = 53) -> list[int]:
        """A list of whole numbers, each below 2^bits in size."""
        value = self.get(name)
        if (
            not isinstance(value, list)
            or len(value) > most
            or not all(type(item) is int and abs(item) < 2**bits for item in value)
        ):
            raise FileInvalid(
                f'{self._where}: "{name}" must be a list of at most {most} whole numbers.'
            )
        return value

    def number(self, name: str) -> float:
        """A finite number."""
        value = self.get(name)
        if not _is_number(value):
            raise FileInvalid(
                f"{self._where}: {_shown(name)} must be a number below 2^1023 in size; found "
                f"{_shown(value)}."
            )
        return float(value)

    def numbers(self, name: str, most: int) -> list[float]:
        """A list of numbers."""
        value = self.get(name)
        if not isinstance(value, list) or len(value) > most or not all(map(_is_number, value)):
            raise FileInvalid(f'{self._where}: "{name}" must be a list of at most {most} numbers.')
        return [float(item) for item in value]

    def only(self, *names: str) -> None:
        """Refuse fields that this version does not know: they might change the meaning."""
        unknown = sorted(set(self._content) - set(names))
        if unknown:
            raise FileInvalid(
                f"{self._where}: unknown field {_shown(unknown[0])}. "
                "Use the fedassay version that wrote the file."
            )


def _is_number(value: object) -> bool:
    """Whether a value is a number that a float can hold; true and false are none."""
    return isinstance(value, int | float) and type(value) is not bool and abs(value) < 2**1023


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return content
