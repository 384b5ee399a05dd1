"""Figures as SVG with real text: a frame with axes, and what is drawn inside it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from fedassay.report.markup import Markup, element, joined

_TICKS = 5
_SMALL = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The inside of a figure: a rectangle of the page for a rectangle of numbers."""

    x: tuple[float, float] = (0.0, 1.0)
    y: tuple[float, float] = (0.0, 1.0)
    width: float = 440.0
    height: float = 380.0
    left: float = 52.0
    right: float = 14.0
    top: float = 12.0
    bottom: float = 46.0

    def at_x(self, value: float) -> float:
        """Where a number lies from left to right."""
        low, high = self.x
        return self.left + (value - low) / (high - low) * (self.width - self.left - self.right)

    def at_y(self, value: float) -> float:
        """Where a number lies from top to bottom."""
        low, high = self.y
        room = self.height - self.top - self.bottom
        return self.height - self.bottom - (value - low) / (high - low) * room

    def axes(
        self,
        xlabel: str,
        ylabel: str,
        *,
        xticks: Sequence[float] | None = None,
        yticks: Sequence[float] | None = None,
    ) -> Markup:
        """Lines at round numbers, and what they are."""
        low, high = self.at_y(self.y[0]), self.at_y(self.y[1])
        start, end = self.at_x(self.x[0]), self.at_x(self.x[1])
        parts = []
        for value in ticks(*self.x) if xticks is None else xticks:
            x = short(self.at_x(value))
            parts.append(element("line", class_="grid", x1=x, x2=x, y1=short(low), y2=short(high)))
            parts.append(_text(tick_text(value), x, short(low + 16), "middle"))
        for value in ticks(*self.y) if yticks is None else yticks:
            y = short(self.at_y(value))
            parts.append(element("line", class_="grid", x1=short(start), x2=short(end), y1=y, y2=y))
            parts.append(
                _text(tick_text(value), short(start - 6), short(self.at_y(value) + 4), "end")
            )
        parts.append(_text(xlabel, short((start + end) / 2), short(self.height - 8), "middle"))
        middle = (low + high) / 2
        parts.append(
            element(
                "text",
                ylabel,
                text_anchor="middle",
                transform=f"translate(13 {short(middle)}) rotate(-90)",
            )
        )
        return element("g", *parts, class_="axes")

    def path(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        """A line through points, with a gap where a number is missing."""
        pieces, last, drawing = [], "", False
        for x, y in zip(xs, ys, strict=True):
            if not (isfinite(x) and isfinite(y)):
                drawing = False
                continue
            here = f"{short(self.at_x(x))} {short(self.at_y(self._inside(y)))}"
            if drawing and here == last:
                continue
            pieces.append(f"{'L' if drawing else 'M'}{here}")
            last, drawing = here, True
        return "".join(pieces)

    def line(self, xs: Iterable[float], ys: Iterable[float], **attributes: str | bool) -> Markup:
        """A line through points; what lies outside is drawn at the border."""
        return element("path", d=self.path(xs, ys), **{"class_": "line", **attributes})

    def band(
        self,
        xs: Sequence[float],
        low: Sequence[float],
        high: Sequence[float],
        **attributes: str | bool,
    ) -> Markup:
        """What lies between two lines."""
        return element("path", d=self.band_path(xs, low, high), **{"class_": "band", **attributes})

    def band_path(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
        """Its outline: along the upper ends, and back along the lower ones."""
        known = [
            each for each in zip(xs, low, high, strict=True) if all(isfinite(end) for end in each)
        ]
        if not known:
            return ""
        xs, low, high = zip(*known, strict=True)
        there, back = self.path(xs, high), self.path(reversed(xs), reversed(low))
        return f"{there}L{back[1:]}Z"

    def dot(self, x: float, y: float, **attributes: str | float | bool) -> Markup:
        """A point."""
        place = {"cx": short(self.at_x(x)), "cy": short(self.at_y(self._inside(y)))}
        return element("circle", **{**place, "r": 4, **attributes})

    def upright(self, x: float, low: float, high: float, **attributes: str) -> Markup:
        """A line from bottom to top."""
        at = short(self.at_x(x))
        ends = (short(self.at_y(self._inside(end))) for end in (low, high))
        return element("line", x1=at, x2=at, y1=next(ends), y2=next(ends), **attributes)

    def _inside(self, y: float) -> float:
        """Only what is shown is clipped to the frame."""
        return min(max(y, self.y[0]), self.y[1])

    def figure(
        self,
        name: str,
        title: str,
        description: str,
        *content: Markup,
        legend: Markup | None = None,
    ) -> Markup:
        """The whole figure; its frame goes along, so that the page's script can place points."""
        sides = (self.left, self.width - self.right, self.height - self.bottom, self.top)
        drawing = element(
            "svg",
            element("title", title, id=f"{name}-title"),
            element("desc", description, id=f"{name}-text"),
            *content,
            id=name,
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            role="img",
            aria_labelledby=f"{name}-title {name}-text",
            data_frame=" ".join(f"{number:.9g}" for number in (*self.x, *self.y, *sides)),
        )
        caption = element("figcaption", element("b", title), legend)
        return element("figure", caption, drawing)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from one end to the other, about five.

    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    room = (high - low) / _TICKS
    unit = 10.0 ** floor(log10(room))
    step = next(unit * size for size in (1, 2, 5, 10) if unit * size >= room - _SMALL * unit)
    marks = range(ceil(low / step - _SMALL), floor(high / step + _SMALL) + 1)
    return [round(mark * step, 12) for mark in marks]


def tick_text(value: float) -> str:
    """A tick's number, as short as it can be.

    >>> tick_text(0.30000000000000004), tick_text(-0.0), tick_text(20000.0)
    ('0.3', '0', '20,000')
    """
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value + 0.0:.4g}"


def short(value: float) -> str:
    """A place on the page with one digit after the point, which is a tenth of a pixel.

    >>> short(12.04), short(12.0)
    ('12', '12')
    """
    return f"{value:.1f}".removesuffix(".0")


def legend(*entries: tuple[str, str]) -> Markup:
    """What lines and colours mean: the class of the swatch, and words."""
    return joined(
        *(
            element(
                "span",
                element("i", class_=f"key {name}", aria_hidden="true"),
                words,
                class_="entry",
            )
            for name, words in entries
        )
    )


def _text(words: str, x: str, y: str, anchor: str, class_: str | None = None) -> Markup:
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=class_)
