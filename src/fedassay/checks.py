"""What a constructor accepts: one sentence for each way to be wrong.

Values refuse what they do not understand, in the words of `errors`: the rule, what was
found, the remedy. Texts become choices here too, for the door and for files' readers.
"""

import operator
import re
from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from math import isnan
from typing import TypeVar

from fedassay.errors import SettingInvalid

_E = TypeVar("_E", bound=Enum)
_DIGEST = re.compile(r"[0-9a-f]{64}")

DOOR = "The functions of fedassay itself take texts and numbers."


def shown(value: object) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def require_type(
    value: object,
    kinds: type | tuple[type, ...],
    what: str,
    remedy: str = DOOR,
    *,
    withhold: bool = False,
) -> None:
    """Raise unless a value is of one of these types; a bool is no int.

    What may hold rows is withheld: the message then names its type alone.
    """
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    is_bool_for_int = isinstance(value, bool) and bool not in wanted
    if is_bool_for_int or not isinstance(value, wanted):
        names = " or ".join(kind.__name__ for kind in wanted)
        there = _article(type(value).__name__) if withhold else shown(value)
        raise SettingInvalid(f"{what} must be {_article(names)}; found {there}. {remedy}")


def require_member(value: object, kind: type[_E], what: str, *, door: str | None = None) -> None:
    """Raise unless a value is a member of an enum; names the member that a text means.

    `door` is the function that takes texts, if there is one.
    """
    if isinstance(value, kind):
        return
    known = {member.value: member for member in kind}
    if isinstance(value, str) and value in known:
        texts = f", or use {door}, which takes texts" if door else ""
        remedy = f"Write {kind.__name__}.{known[value].name}{texts}."
    else:
        remedy = f"There are {', '.join(f'{kind.__name__}.{member.name}' for member in kind)}."
    raise SettingInvalid(
        f"{what} must be {_article(kind.__name__)}; found {shown(value)}. {remedy}"
    )


def require_whole(
    value: object, what: str, low: int, high: int | None = None, remedy: str = ""
) -> int:
    """A whole number within limits, from Python or numpy; anything else raises."""
    within = f"at least {low}" if high is None else f"from {low} to {high}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]  # what has none is refused
    except TypeError:
        raise SettingInvalid(
            f"{what} must be a whole number, {within}; found {shown(value)}. Pass an int."
        ) from None
    if number < low or (high is not None and number > high):
        default = "Raise it." if number < low else "Lower it."
        raise SettingInvalid(f"{what} must be {within}; found {number}. {remedy or default}")
    return number


def require_fraction(value: object, what: str) -> None:
    """Raise unless a value is an exact Fraction."""
    if not isinstance(value, Fraction):
        raise SettingInvalid(
            f"{what} must be a Fraction, so that it is exact; found {shown(value)}. "
            f'Write Fraction("{_as_text(value)}"), or use a function of fedassay itself.'
        )


def require_number(value: object, what: str) -> float:
    """A number that is not missing; anything else raises."""
    if isinstance(value, bool | str | bytes):
        raise SettingInvalid(f"{what} must be a number; found {shown(value)}. Pass a float.")
    try:
        number = float(value)  # type: ignore[arg-type]  # what has none is refused
    except (TypeError, ValueError):
        raise SettingInvalid(
            f"{what} must be a number; found {shown(value)}. Pass a float."
        ) from None
    if isnan(number):
        raise SettingInvalid(f"{what} must be a number; found a missing one (NaN). Pass a float.")
    return number


def require_thresholds(thresholds: Iterable[object]) -> None:
    """Raise unless all thresholds lie in [0, 1]."""
    for threshold in thresholds:
        if not 0.0 <= require_number(threshold, "a threshold") <= 1.0:
            raise SettingInvalid(f"a threshold must lie in [0, 1]; found {threshold}. Scores do.")


def choice(kind: type[_E], value: object, what: str) -> _E:
    """A member of an enum, or the text that names it; others are refused with the list.

    >>> from fedassay.mechanisms import Privacy
    >>> choice(Privacy, "local", "privacy")
    <Privacy.LOCAL: 'local'>
    """
    if isinstance(value, kind):
        return value
    known = {str(member.value): member for member in kind}
    if isinstance(value, str) and value in known:
        return known[value]
    raise SettingInvalid(unknown(value, known, what))


def unknown(value: object, known: Iterable[str], what: str) -> str:
    """The sentence that refuses a name, with those there are and the one that was meant."""
    names = list(known)
    close = get_close_matches(value, names, n=1) if isinstance(value, str) else []
    hint = f' Did you mean "{close[0]}"?' if close else ""
    return f"{what} is one of {', '.join(names)}; found {shown(value)}.{hint}"


def _article(names: str) -> str:
    sounds_open = names[0] in "aeiouAEIOU" and not names.startswith("Uni")
    return f"an {names}" if sounds_open else f"a {names}"


def _as_text(value: object) -> str:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else "1/3"


def check_model_digest(digest: object) -> None:
    """Raise unless a model's digest, where one is given, is a SHA-256 in hexadecimal.

    >>> check_model_digest("0" * 64)
    """
    if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        raise SettingInvalid(
            "a model digest is 64 lower-case hexadecimal digits (SHA-256 of the model file); "
            f"found {shown(digest)}. Make it with: sha256sum model.bin"
        )
