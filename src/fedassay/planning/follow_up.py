"""The second of two surveys, from the assessment of the first."""

from fedassay.assessment import Assessment
from fedassay.checks import require_whole
from fedassay.errors import SettingInvalid
from fedassay.planning.first_survey import first_grid
from fedassay.planning.second_survey import second_survey
from fedassay.survey import MAX_CLIENTS, Survey


def follow_up(
    first: Assessment, others: list[str], thresholds: tuple[float, ...], clients: int | None
) -> Survey:
    """The survey that follows a first one, whose settings it keeps.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> asked = {"privacy": "distributed", "epsilon": 1, "steps": 2, "seed": 0}
    >>> first = fedassay.simulate(labels, scores, **asked).first
    >>> follow_up(first, ["epsilon"], (), None)
    Traceback (most recent call last):
    ...
    fedassay.errors.SettingInvalid: a second survey keeps what the first one said, but for...
    """
    if others:
        raise SettingInvalid(
            "a second survey keeps what the first one said, but for thresholds and clients; "
            f"found {', '.join(others)}. Leave that out."
        )
    if clients is not None:
        require_whole(clients, "clients", 1, MAX_CLIENTS)
    edges = first.survey.grid.edges
    off = [threshold for threshold in thresholds if threshold not in edges]
    if off:
        raise SettingInvalid(
            f"a second survey has the cells of the first, which have no edge at {off[0]:g}. Name "
            "thresholds with the first survey; others are read between edges, without naming them."
        )
    # Those that the first survey was told are the edges that it has besides its usual ones.
    told = set(edges.tolist()) - set(first_grid().edges.tolist())
    read = {each for each in first.thresholds if each in edges}
    wanted = thresholds or tuple(sorted(told | read))
    return second_survey(first.survey, first.tally, thresholds=wanted, clients=clients)
