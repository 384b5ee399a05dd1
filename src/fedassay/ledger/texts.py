"""Texts in a ledger: names that people give, and what is read back exactly."""

import re
from enum import Enum
from fractions import Fraction
from typing import TypeVar

from fedassay.checks import require_type
from fedassay.errors import FileInvalid, SettingInvalid

MAX_TEXT = 200
_RATIONAL = re.compile(r"[0-9]{1,490}(/[1-9][0-9]{0,489})?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_E = TypeVar("_E", bound=Enum)


def check_text(text: str, name: str) -> None:
    """Names are short and printable: they end up in tables and on terminals."""
    require_type(text, str, name, "Pass a short name.")
    if not 0 < len(text) <= MAX_TEXT or not text.isprintable():
        raise SettingInvalid(
            f"{name} must be 1 to {MAX_TEXT} printable characters; found {len(text)}, or one "
            "that is not printable."
        )


def rational(text: str) -> Fraction:
    """Read "1/3" or "2" exactly."""
    if not _RATIONAL.fullmatch(text):
        raise FileInvalid(f'expected a fraction such as "1/3"; found {text[:40]!r}.')
    return Fraction(text)


def one_of(kind: type[_E], value: object) -> _E:
    """The member with this value."""
    for member in kind:
        if member.value == value:
            return member
    raise FileInvalid(f"expected one of {[m.value for m in kind]}; found {str(value)[:40]!r}.")


def digest(text: str) -> str:
    """A SHA-256 in hexadecimal, as it is."""
    if not _DIGEST.fullmatch(text):
        raise FileInvalid("a digest is 64 lower-case hexadecimal digits; found another text.")
    return text
