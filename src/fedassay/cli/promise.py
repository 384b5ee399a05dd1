"""What a client at the command line agrees to, said aloud before its table is opened."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from fedassay.cli import options
from fedassay.cli.console import out
from fedassay.client import CEILING, ClientPolicy, default_epsilon
from fedassay.errors import SurveyRefused
from fedassay.mechanisms import Privacy
from fedassay.survey import Survey

ExactSumsOption = Annotated[
    bool, typer.Option("--exact-sums", help="Answer surveys that reveal sums without noise.")
]
SmallestCellOption = Annotated[
    int,
    typer.Option(
        "--smallest-cell",
        metavar="K",
        min=0,
        help="Refuse exact sums that publish counts below K, or have too many cells (0: none).",
    ),
]
LargestEpsilonOption = Annotated[
    str | None,
    typer.Option(
        "--largest-epsilon",
        metavar="E",
        help=f"Refuse surveys that spend more: by default {default_epsilon(Privacy.DISTRIBUTED)}, "
        f"or {default_epsilon(Privacy.LOCAL)} for local reports; at most {CEILING}.",
    ),
]
LargestLocalEpsilonOption = Annotated[
    str | None,
    typer.Option(
        "--largest-local",
        metavar="E",
        help="Refuse shuffled surveys whose reports cost more alone: by default "
        f"{default_epsilon(Privacy.LOCAL)}; at most {CEILING}.",
    ),
]


def agreed_policy(
    survey: Survey,
    *,
    smallest_cohort: int,
    largest_epsilon: str | None,
    largest_local_epsilon: str | None,
    exact_sums: bool,
    smallest_cell: int,
    model: Path | None,
    quiet: bool = False,
) -> ClientPolicy:
    """The client's policy, if the survey keeps within it; says the survey's promise first.

    Raises `SurveyRefused` before anything of the client's was read.
    """
    if not quiet:
        out.print(survey.guarantee.sentence(), markup=False)
    policy = client_policy(
        smallest_cohort=smallest_cohort,
        largest_epsilon=largest_epsilon,
        largest_local_epsilon=largest_local_epsilon,
        exact_sums=exact_sums,
        smallest_cell=smallest_cell,
        model=model,
    )
    try:
        policy.check(survey)
    except SurveyRefused as error:
        raise SurveyRefused(f"{error}{_option_that_allows(survey, policy)}") from None
    return policy


def client_policy(
    *,
    smallest_cohort: int,
    largest_epsilon: str | None,
    largest_local_epsilon: str | None,
    exact_sums: bool,
    smallest_cell: int,
    model: Path | None,
) -> ClientPolicy:
    """The client's policy, as the options say it."""
    return ClientPolicy(
        smallest_cohort=smallest_cohort,
        largest_epsilon=options.fraction_option(largest_epsilon, "the largest epsilon"),
        largest_local_epsilon=options.fraction_option(
            largest_local_epsilon, "the largest local epsilon"
        ),
        exact_sums=exact_sums,
        smallest_cell=smallest_cell,
        model_digests=frozenset() if model is None else frozenset([options.file_digest(model)]),
    )


def _option_that_allows(survey: Survey, policy: ClientPolicy) -> str:
    """What to type, where it is this client's to allow."""
    if survey.total_epsilon is None:
        options = [] if policy.exact_sums else ["--exact-sums"]
        if policy.smallest_cell > max(survey.smallest_cell, 1):
            options.append(f"--smallest-cell {survey.smallest_cell}")
        return f" Or answer it knowingly: {' '.join(options)}." if options else ""
    most: Fraction = policy.largest_epsilon or default_epsilon(survey.privacy)
    if most < survey.total_epsilon <= CEILING:
        return f" Or answer it knowingly: --largest-epsilon {survey.total_epsilon}."
    local = survey.local_epsilon if survey.shuffled is not None else None
    alone: Fraction = policy.largest_local_epsilon or default_epsilon(Privacy.LOCAL)
    if local is not None and alone < local <= CEILING:
        return f" Or answer it knowingly: --largest-local {local}."
    return ""
