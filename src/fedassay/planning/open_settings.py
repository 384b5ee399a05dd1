"""What a request must say before a survey can be made of it."""

from dataclasses import replace
from fractions import Fraction

from fedassay.checks import require_type
from fedassay.errors import SettingInvalid
from fedassay.mechanisms import Privacy
from fedassay.planning.request import LevelChoice, Preset, Steps, SurveyRequest


def check_request(request: SurveyRequest) -> None:
    """Raise `SettingInvalid` while a survey cannot be made because something is left open.

    >>> check_request(SurveyRequest(clients=100))
    """
    require_type(request, SurveyRequest, "a request", "fedassay.new_survey takes its settings.")
    match request.privacy:
        case Privacy.SECURE:
            return
        case Privacy.DISTRIBUTED:
            _require_epsilon(request)
            if request.minimum_reports is None and request.clients is None:
                raise SettingInvalid(
                    "noise shares are sized for a number of reports; found neither minimum_reports "
                    "nor clients. Add minimum_reports=N (--minimum-reports N), the fewest that may "
                    "arrive."
                )
        case Privacy.SITE:
            _require_epsilon(request)
            check_site_rows(request)
        case Privacy.LOCAL:
            _require_epsilon(request)
        case Privacy.SHUFFLED:
            _require_epsilon(request)
            if request.minimum_reports is None and not (request.clients or request.examples):
                raise SettingInvalid(
                    "shuffled reports hide in a crowd of so many; found neither minimum_reports "
                    "nor clients. Add minimum_reports=N (--minimum-reports N), the fewest that "
                    "the shuffler passes on of any level."
                )


def check_site_rows(request: SurveyRequest) -> None:
    """Raise unless a request says how many sites there are and how many rows they hold.

    >>> check_site_rows(SurveyRequest(privacy=Privacy.SITE, clients=8, examples=40_000))
    """
    is_given = request.height is not None or request.preset is Preset.PAPER
    lacking = [name for name in ("clients", "examples") if getattr(request, name) is None]
    if request.privacy is Privacy.SITE and not is_given and lacking:
        raise SettingInvalid(
            "every site adds the whole noise, so that a grid is chosen for so many sites and "
            f"rows; found no {' and no '.join(lacking)}. Add clients=N for the sites and "
            "examples=R for their rows in all (--clients N --examples R)."
        )


def _require_epsilon(request: SurveyRequest) -> None:
    if request.epsilon is None:
        raise SettingInvalid(
            f"{request.privacy.value} differential privacy needs an epsilon; found none. "
            "Add epsilon=1 (--epsilon 1)."
        )


def check_one_group(request: SurveyRequest) -> None:
    """Raise where groups are to be planned for: errors are those of one group.

    >>> check_one_group(SurveyRequest(clients=100))
    """
    if request.groups is None:
        return
    count = len(request.groups.names)
    rows = request.examples or request.clients or request.rows_expected
    alike = max(rows // (count**2 if request.privacy.is_local else count), 1)
    raise SettingInvalid(
        f"a plan's errors are of one group; found {count} groups. They share one epsilon: plan one "
        f"of average size, which is worth {alike:,} rows alone (examples={alike}, --examples "
        f"{alike}). A second column of groups is another survey, and costs epsilon once more."
    )


def under_privacy(request: SurveyRequest, privacy: Privacy) -> SurveyRequest:
    """The same question under another privacy model, without what goes with some models only.

    >>> under_privacy(SurveyRequest(clients=10, smallest_cell=20), Privacy.LOCAL).epsilon
    Fraction(1, 1)
    """
    is_site, is_exact = privacy is Privacy.SITE, not privacy.spends_epsilon
    is_shuffled = privacy is Privacy.SHUFFLED
    has_shape = request.height is not None or request.preset is Preset.PAPER
    smallest = 0 if has_shape else request.smallest_cell
    return replace(
        request,
        privacy=privacy,
        epsilon=None if is_exact else request.epsilon or Fraction(1),
        steps=Steps.ONE if is_exact or request.steps is Steps.ONE else Steps.AUTO,
        budget=None if is_exact else request.budget,
        levels=LevelChoice.EVERY if is_site else request.levels,
        smallest_cell=smallest if is_exact else None,
        sum_only=request.sum_only and is_site,
        allow_empty=request.allow_empty and not is_site,
        site_moments=request.site_moments and is_exact,
        minimum_reports=None,
        colluders=0,
        delta=request.delta if is_shuffled else None,
        largest_local_epsilon=request.largest_local_epsilon if is_shuffled else None,
    )
