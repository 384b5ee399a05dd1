"""Drawings of docs/concepts: the walk of one example, whom one trusts, what an interval covers.

`python -m experiments.concept_drawings` writes docs/figures/*.svg: boxes, arrows and real text.
"""

from html import escape
from pathlib import Path

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
INK, SITE, OPEN, NOISE = "#1b2733", "#dcebf7", "#f4f1ea", "#b5482a"
FONT = "system-ui, sans-serif"
WAVES = {"distributed": "≈", "site": "≈≈", "local": "≈≈≈", "shuffled": "≈"}


class Drawing:
    """A picture of so many units, filled from the top left."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title, self.parts = (width, height), title, list[str]()

    def box(self, x: float, y: float, w: float, h: float, fill: str = OPEN) -> None:
        """A rectangle with round corners."""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" fill="{fill}" stroke="{INK}"/>'
        )

    def text(self, x: float, y: float, words: str, *, size: int = 14, **style: str) -> None:
        """Lines of text, the first with its baseline at y."""
        given = {"text-anchor": "middle", "fill": INK, "font-weight": "normal"}
        given |= {name.replace("_", "-"): value for name, value in style.items()}
        attributes = " ".join(f'{name}="{value}"' for name, value in given.items())
        for number, line in enumerate(words.split("\n")):
            place = y + number * (size + 4)
            self.parts.append(
                f'<text x="{x}" y="{place}" font-size="{size}" {attributes}>{escape(line)}</text>'
            )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, colour: str = INK) -> None:
        """A line with a head at its end."""
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" '
            'stroke-width="1.5" marker-end="url(#head)"/>'
        )

    def bar(self, x1: float, x2: float, y: float, colour: str) -> None:
        """An interval with its ends and its middle."""
        for a, b, c, d in ((x1, y, x2, y), (x1, y - 6, x1, y + 6), (x2, y - 6, x2, y + 6)):
            self.parts.append(
                f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" stroke="{colour}" stroke-width="3"/>'
            )
        self.parts.append(f'<circle cx="{(x1 + x2) / 2}" cy="{y}" r="5" fill="{colour}"/>')

    def write(self, name: str) -> None:
        """The picture as a file."""
        width, height = self.size
        head = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            f'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker>'
            "</defs>"
        )
        body = "\n".join(self.parts)
        (FIGURES / f"{name}.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" font-family="{FONT}">\n'
            f"<title>{escape(self.title)}</title>\n"
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{head}\n{body}\n</svg>\n',
            "utf-8",
        )


def walk() -> None:
    """One row with score 0.62 and label 1, from its site to a figure."""
    drawing = Drawing(860, 290, "The walk of one example")
    drawing.box(10, 40, 420, 240, SITE)
    drawing.box(450, 40, 400, 240)
    drawing.text(220, 28, "at a site", font_weight="bold")
    drawing.text(650, 28, "where reports are added up", font_weight="bold")
    steps = [
        (30, "a row\nscore 0.62\nlabel 1"),
        (165, "its cell\n(0.60, 0.65]\ncounts 1 more"),
        (300, "plus noise\n+3, -1, 0, ...\nwhole numbers"),
    ]
    for x, words in steps:
        drawing.box(x, 80, 115, 84, "#ffffff")
        drawing.text(x + 57, 106, words)
    drawing.arrow(145, 122, 163, 122)
    drawing.arrow(280, 122, 298, 122)
    drawing.text(220, 200, "the site's policy looks at the survey first,", size=13)
    drawing.text(220, 220, "then the ledger is charged, then noise is drawn", size=13)
    drawing.text(220, 262, "rows stay here; the report is all that leaves", fill=NOISE)
    drawing.arrow(415, 122, 468, 122)
    right = [
        (470, "tally\nsum of all\nreports"),
        (600, "histogram\ncounts, and\nhow noisy"),
        (730, "figures\nAUC 0.785\n± 0.004"),
    ]
    for x, words in right:
        drawing.box(x, 80, 105, 84, "#ffffff")
        drawing.text(x + 52, 106, words)
    drawing.arrow(575, 122, 598, 122)
    drawing.arrow(705, 122, 728, 122)
    drawing.text(650, 200, "integers until here,", size=13)
    drawing.text(650, 220, "then estimates that know their noise", size=13)
    drawing.text(650, 262, "no figure without its error")
    drawing.write("walk")


def trust() -> None:
    """Who sees what under the five privacy models."""
    drawing = Drawing(860, 576, "Whom each privacy model trusts")
    locked = "secure aggregation,\n"
    rows = [
        ("secure", "exact counts", "only the exact sum", f"{locked}and that sums tell little"),
        (
            "distributed",
            "counts + a share of noise",
            "only the noisy sum",
            f"{locked}and enough honest sites",
        ),
        ("site", "counts + all of the noise", "each noisy report", "nobody beyond the site itself"),
        (
            "local",
            "every row adds its own noise",
            "every noisy row",
            "nobody:\nevery report protects itself",
        ),
        (
            "shuffled",
            "every row adds a little noise",
            "noisy rows, mixed",
            "the shuffler, to mix them;\nelse every report protects itself less",
        ),
    ]
    for x, words in ((60, ""), (215, "what leaves"), (495, "what is seen"), (740, "whom to trust")):
        drawing.text(x, 24, words, font_weight="bold")
    for number, (name, leaves, seen, trusted) in enumerate(rows):
        y = 42 + 106 * number
        drawing.text(50, y + 52, name, font_weight="bold")
        drawing.box(105, y, 220, 92, SITE)
        for place in range(3):
            drawing.box(122 + 66 * place, y + 12, 54, 34, "#ffffff")
            drawing.text(149 + 66 * place, y + 34, "rows", size=13)
            if name != "secure":
                marks = WAVES[name]
                drawing.text(149 + 66 * place, y + 58, marks, fill=NOISE, font_weight="bold")
        drawing.text(215, y + 80, leaves, size=13)
        drawing.arrow(327, y + 46, 408, y + 46)
        if name in ("secure", "distributed"):
            drawing.box(338, y + 26, 56, 40, "#ffffff")
            drawing.text(366, y + 51, "locked", size=13)
        elif name == "shuffled":
            drawing.box(338, y + 26, 56, 40, "#ffffff")
            drawing.text(366, y + 51, "mixed", size=13)
        drawing.box(410, y, 170, 92)
        drawing.text(495, y + 50, seen)
        drawing.text(720, y + (42 if "\n" in trusted else 50), trusted, size=13)
    drawing.write("trust")


def intervals() -> None:
    """Four intervals of one figure, from the narrowest to the widest."""
    drawing = Drawing(860, 300, "What each interval covers")
    rows = [
        ("these very rows", "privacy noise and cells", 30, "#3f6d9b"),
        ("new rows of these sites (as printed)", "and the luck of the rows", 60, "#3f6d9b"),
        ("the mean over sites like these", "and which sites took part", 95, "#6b4c9a"),
        ("one new site", "and how much sites differ", 160, NOISE),
    ]
    drawing.text(150, 30, "the true value of", font_weight="bold")
    drawing.text(740, 30, "what it allows for", font_weight="bold")
    for number, (of, allows, half, colour) in enumerate(rows):
        y = 76 + 58 * number
        drawing.text(150, y + 5, of)
        drawing.bar(450 - half, 450 + half, y, colour)
        drawing.text(740, y + 5, allows)
    drawing.arrow(290, 282, 610, 282)
    drawing.text(640, 286, "AUC")
    drawing.write("intervals")


def crowded() -> None:
    """Why one grid does not do where scores crowd, and what a second survey changes."""
    drawing = Drawing(860, 330, "Why crowded scores need two steps")
    heights = [150, 96, 60, 38, 25, 17, 12, 9, 7, 5, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1]
    titles = ("asked once: even cells", "asked twice: cells where scores are")
    edges = ([20 * i for i in range(21)], [0, 3, 6, 10, 15, 21, 28, 38, 52, 72, 100, 140, 200, 400])
    for panel, (title, cuts) in enumerate(zip(titles, edges, strict=True)):
        left = 20 + 430 * panel
        drawing.text(left + 195, 28, title, font_weight="bold")
        for number, height in enumerate(heights):
            x = left + 19.5 * number
            drawing.parts.append(
                f'<rect x="{x}" y="{230 - height}" width="18" height="{height}" fill="{SITE}"/>'
            )
        for cut in cuts:
            x = left + cut * 0.975
            drawing.parts.append(
                f'<line x1="{x}" y1="60" x2="{x}" y2="236" stroke="{NOISE}" stroke-width="1"/>'
            )
        drawing.parts.append(
            f'<line x1="{left}" y1="231" x2="{left + 390}" y2="231" stroke="{INK}"/>'
        )
        drawing.text(left, 254, "0", size=13)
        drawing.text(left + 390, 254, "1", size=13)
    drawing.text(
        215,
        282,
        "a third of the rows share one cell:\nwho is above whom there, nobody knows",
        size=13,
    )
    drawing.text(
        645,
        282,
        "the first, noisy tally said where;\nboth are read together, for one epsilon",
        size=13,
    )
    drawing.write("crowded")


if __name__ == "__main__":
    for draw in (walk, trust, intervals, crowded):
        draw()
