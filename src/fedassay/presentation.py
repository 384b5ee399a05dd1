"""How values look to people: plain text for a terminal, HTML for a notebook."""

from collections.abc import Sequence
from html import escape

_GAP = "  "


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in plain text: the first column to the left, all others to the right.

    >>> print(aligned(["metric", "value"], [["roc_auc", "0.75"], ["ks", "0.5"]]))
    metric   value
    roc_auc   0.75
    ks         0.5
    """
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        _GAP.join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same table for a notebook; texts are escaped."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """A sentence for a notebook."""
    return f"<p>{escape(text)}</p>"
