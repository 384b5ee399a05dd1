"""The page of claims: each held against what was measured, a row for every table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedassay.reproduction.claims import CLAIMS
from fedassay.reproduction.findings import Curves
from fedassay.reproduction.pages import markdown_table
from fedassay.reproduction.recipes import RECIPES
from fedassay.reproduction.results import Point

_ROUNDED = 0.005
"""The paper has two digits."""
_VERDICTS = {True: "yes", False: "**no**", None: "cannot tell"}


def results_page(
    figures: Mapping[str, Sequence[Point]],
    *,
    quick: bool,
    tables: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Every claim whose figure was measured, a row for each table, and what explains the rest.

    `tables` are those of the run, as its files describe them.
    """
    reasons = dict[str, str]()
    body = list(_classifiers(tables)) if "table2" in figures else []
    for claim in CLAIMS:
        points = figures.get(claim.figure, ())
        for data in filter(claim.speaks_of, dict.fromkeys(point.data for point in points)):
            found = claim.find(Curves([point for point in points if point.data == data]))
            verdict = _VERDICTS[found.agrees]
            body.append(
                [claim.text, claim.paper, data, found.preset, found.default, verdict, claim.figure]
            )
            if found.agrees is False:
                reasons[claim.text] = claim.why or "not explained yet."
    agreed, open_ = (sum(_VERDICTS[each] in row for row in body) for each in (True, None))
    size = "a quick run, for a first look" if quick else "the paper's settings"
    header = ["claim", "paper", "table", "our paper preset", "our default", "agrees", "figure"]
    text = (
        "# The paper's claims, measured again\n\n"
        f"Made by `fedassay reproduce` ({size}) from the JSON of its figures: mean ± half "
        "of its 95 % interval over repetitions. The default spends the same epsilon on the same "
        "clients. *Agrees* is whether the paper preset does what the paper says, within a factor "
        f"of two or so: {agreed} of {len(body)} rows do, and {open_} need more repetitions to "
        f"tell.\n\n{markdown_table(header, body)}\n"
    )
    if reasons:
        listed = "\n".join(f"- *{claim}*: {why}" for claim, why in reasons.items())
        text += f"\n## Where ours disagrees, and why\n\n{listed}\n"
    return text


def _classifiers(tables: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """What the paper's table of classifiers says, beside ours."""
    for table in tables:
        for recipe in RECIPES:
            if table["name"].startswith(recipe.name):
                found = float(table["roc_auc"])
                verdict = _VERDICTS[abs(found - recipe.roc_auc) < _ROUNDED]
                yield [
                    f"ROC AUC of {recipe.learner.value}",
                    f"{recipe.roc_auc:.2f}",
                    table["name"],
                    f"{found:.4f}",
                    "–",
                    verdict,
                    "table2",
                ]
