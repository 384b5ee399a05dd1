"""The time window of data: from an instant up to, and without, another."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fedassay.checks import require_type
from fedassay.errors import SettingInvalid

_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Window:
    """All instants t with start <= t < end; None is no limit on that side.

    >>> Window.parse("2026-01-01..2026-02-01").overlaps(Window.parse("2026-02-01..2026-03-01"))
    False
    """

    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        for instant in (self.start, self.end):
            if instant is not None:
                require_type(instant, datetime, "a window's instant", "Use Window.parse.")
            if instant is not None and instant.utcoffset() is None:
                raise SettingInvalid(
                    "a window's instants need a time zone; found one without. Write UTC."
                )
        if self.first >= self.last:
            raise SettingInvalid(
                f"a window must end after it starts; found {self}. Swap the two, or leave one out."
            )

    @property
    def first(self) -> datetime:
        """The start, or the earliest instant there is."""
        return self.start or _FIRST

    @property
    def last(self) -> datetime:
        """The end, or the latest instant there is."""
        return self.end or _LAST

    def overlaps(self, other: "Window") -> bool:
        """Whether some instant lies in both."""
        return self.first < other.last and other.first < self.last

    def is_within(self, others: Sequence["Window"]) -> bool:
        """Whether these windows together cover this one."""
        reached = self.first
        for other in sorted(others, key=lambda each: each.first):
            if other.first <= reached:
                reached = max(reached, other.last)
        return reached >= self.last if others else False

    @classmethod
    def parse(cls, text: str) -> "Window":
        """Read FROM..TO, dates or times of ISO 8601 in UTC; either may be left out."""
        start, dots, end = text.partition("..")
        if not dots:
            raise SettingInvalid(
                "a window is written FROM..TO, such as 2026-01-01..2026-02-01; found "
                f"{text[:60]!r}."
            )
        return cls(_instant(start), _instant(end))

    def __str__(self) -> str:
        return f"{_text(self.start)}..{_text(self.end)}"

    @property
    def is_ever(self) -> bool:
        """Whether the window has no limits."""
        return self.start is None and self.end is None


EVER = Window()


def _instant(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise SettingInvalid(
            f"dates are written as in 2026-01-31 or 2026-01-31T18:00Z; found {text[:40]!r}."
        ) from error


def _text(instant: datetime | None) -> str:
    """The shortest text that `_instant` reads back."""
    if instant is None:
        return ""
    full = instant.astimezone(UTC).isoformat().removesuffix("+00:00")
    return full.removesuffix("T00:00:00") if full.endswith("T00:00:00") else f"{full}Z"
