"""Small versioned JSON files, read as if a stranger had written them."""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from fedassay.errors import FileInvalid

MAX_JSON_BYTES = 512 * 2**20
_FRACTION = re.compile(r"[0-9]{1,12}(/[1-9][0-9]{0,11})?")


def canonical(content: Mapping[str, Any]) -> bytes:
    """One byte string per content: sorted keys, no spaces, shortest exact floats."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def read_json(path: Path, expected_format: str) -> dict[str, Any]:
    """Read an object whose "format" is as expected; size is checked before reading."""
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise FileInvalid(
                f"{path}: such files are at most {MAX_JSON_BYTES} bytes; found {size}. "
                "This is probably another file."
            )
        content = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise FileInvalid(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    except (ValueError, RecursionError) as error:
        raise FileInvalid(
            f"{path}: not a JSON file, or cut short. Copy it again from its source."
        ) from error
    return check_format(content, expected_format, str(path))


def check_format(content: object, expected_format: str, where: str) -> dict[str, Any]:
    """Return content if it is an object of this format and version."""
    found = content.get("format") if isinstance(content, dict) else None
    if not isinstance(content, dict) or found != expected_format:
        raise FileInvalid(
            f'{where}: expected format "{expected_format}"; found {_shown(found)}. '
            "Pass the right file, or use the fedassay version that wrote it."
        )
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write whole or not at all: a crash leaves the old file in place."""
    if not path.name:
        raise FileInvalid(f"{path}: this is a folder. Name a file.")
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with draft.open("w", encoding="utf-8") as stream:
            json.dump(content, stream, allow_nan=False)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise FileInvalid(
            f"{path}: cannot be written ({error.strerror}). Choose a folder you may write to."
        ) from error


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

    def numbers(self, name: str, most: int) -> list[float]:
        """A list of numbers."""
        value = self.get(name)
        if (
            not isinstance(value, list)
            or len(value) > most
            or not all(type(item) in (int, float) and abs(item) < 2**1023 for item in value)
        ):
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


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse_constant(name: str) -> float:
    raise ValueError(name)
