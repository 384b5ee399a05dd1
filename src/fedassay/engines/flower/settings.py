"""The settings of a run, as `flwr run --run-config` gives them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from fedassay.assessment import Assessment
from fedassay.decoding import DecodeOptions
from fedassay.engines.flower.agreement import default_colluders
from fedassay.errors import SettingInvalid
from fedassay.mechanisms import Keep, Privacy, Unit, UnitKind
from fedassay.planning.request import (
    LevelChoice,
    Preset,
    Steps,
    SurveyRequest,
    check_buckets,
    check_thresholds,
)
from fedassay.planning.search import decode_options_for, design_survey
from fedassay.secagg.terms import required_survivors
from fedassay.survey import MAX_CLIENTS, Survey
from fedassay.survey_json import load_survey
from fedassay.survey_moments import FEWEST_HONEST
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from fedassay.tables.reading import Columns, read_reference

_MOST_SECONDS = 86_400
_DEFAULT_HONEST = 3
_E = TypeVar("_E", bound=Enum)


class Route(Enum):
    """How a site's report reaches the sum."""

    AGGREGATED = "secure aggregation"
    """Only the sum over all survivors is ever seen."""
    REPORTED = "reports"
    """Each report protects itself, under local and site privacy, and the server sees it."""
    TRUSTED = "trusted-server"
    """The server sees each site's exact report: for development, never for private data."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """One run: the survey, how its tally is read, and how long to wait for whom."""

    survey: Survey
    decode_options: DecodeOptions
    route: Route
    thresholds: tuple[float, ...]
    sites: int
    """Start as soon as so many sites are there."""
    wait_seconds: float
    """Start with those that are there after this long."""
    stage_seconds: float
    """A site that is silent for this long at a stage has dropped out,"""
    quiet_seconds: float
    """or for this long since another site's answer, once enough have answered."""
    output: Path
    roster: Path | None
    first: Assessment | None = None
    """A first step's assessment, where a run asks the second step only."""

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> "RunSettings":
        """Check a run's configuration, and choose the survey or read its file."""
        values = _Values(config)
        privacy = values.text("privacy")
        if privacy == Privacy.SHUFFLED.value:
            raise SettingInvalid(
                "a federation of sites has no shuffler between them and the server; found "
                "privacy='shuffled'. Choose local or site privacy, or send reports as files "
                "(fedassay shuffle)."
            )
        thresholds = values.thresholds()
        buckets = values.count("buckets", 2**16)
        check_buckets(buckets)
        preset = values.one_of(Preset, "preset")
        survey_file, after = values.text("survey"), values.text("after")
        first = _first(after, survey_file) if after else None
        if first is not None or survey_file:
            survey = load_survey(Path(survey_file)) if first is None else first.survey
            _check_privacy(survey, privacy)
            _check_alone(survey)
            decode_options = decode_options_for(preset, buckets)
        else:
            design = design_survey(_request(values, preset, thresholds, buckets))
            survey, decode_options = design.survey, design.decode_options
        route = _route(survey, privacy)
        roster = values.text("roster")
        output = values.text("output")
        if not output:
            raise SettingInvalid("a run writes its assessment to a file; output names none.")
        return cls(
            survey=survey,
            decode_options=decode_options,
            route=route,
            thresholds=thresholds or (0.5,),
            sites=values.count("sites", MAX_CLIENTS) or fewest_sites(survey, route),
            wait_seconds=values.seconds("wait-seconds"),
            stage_seconds=values.seconds("stage-seconds"),
            quiet_seconds=values.seconds("quiet-seconds"),
            output=Path(output),
            roster=Path(roster) if roster else None,
            first=first,
        )


def _route(survey: Survey, privacy: str) -> Route:
    """How reports to a survey travel."""
    if privacy == "trusted-server":
        return Route.TRUSTED
    return Route.REPORTED if survey.reports_may_be_seen else Route.AGGREGATED


def _first(after: str, survey_file: str) -> Assessment:
    """The assessment of a first step that a run takes up."""
    if survey_file:
        raise SettingInvalid(
            "a run asks a survey or takes up a first step; found both survey and after. "
            "Leave one out."
        )
    first = Assessment.load(Path(after))
    if not isinstance(first.survey.step, FirstOfTwo):
        raise SettingInvalid(
            f"{after[:200]}: a run takes up the first of two steps; this assessment is complete. "
            "Start a new run."
        )
    return first


def _request(
    values: "_Values", preset: Preset, thresholds: tuple[float, ...], buckets: int | None
) -> SurveyRequest:
    privacy = values.text("privacy")
    names = {member.value: member for member in Privacy} | {"trusted-server": Privacy.SECURE}
    if privacy not in names:
        raise SettingInvalid(f"privacy is one of {', '.join(names)}; found {privacy[:40]!r}.")
    reference = values.text("reference")
    columns = Columns(values.text("reference-score"), values.text("reference-label"))
    sites = values.count("sites", MAX_CLIENTS)
    model, sum_only = names[privacy], values.flag("sum-only")
    stands_alone = model.stands_alone and not sum_only
    request = SurveyRequest(
        privacy=model,
        epsilon=values.fraction("epsilon"),
        clients=sites,
        examples=values.count("examples", MAX_CLIENTS),
        positive_rate=values.rate("positive-rate"),
        preset=preset,
        levels=values.one_of(LevelChoice, "levels"),
        steps=values.steps(),
        height=values.count("height", 20),
        fanout=values.count("fanout", 1024),
        buckets=buckets,
        thresholds=thresholds,
        reference=read_reference(Path(reference), columns) if reference else None,
        unit=Unit(
            values.one_of(UnitKind, "unit"),
            values.count("max-examples", MAX_CLIENTS) or 1,
            values.one_of(Keep, "keep"),
        ),
        minimum_reports=values.count("minimum-reports", MAX_CLIENTS),
        colluders=0 if stands_alone else values.colluders(sites or 0),
        sum_only=sum_only,
        model_digest=values.text("model-digest") or None,
        smallest_cell=values.smallest_cell(),
        site_moments=values.flag("site-moments"),
    )
    if request.privacy.is_local:
        # Under local privacy each example is a report; sites only carry them.
        return replace(request, clients=request.examples)
    if stands_alone:
        return request
    honest = FEWEST_HONEST if request.site_moments else _DEFAULT_HONEST
    minimum = request.minimum_reports or honest + request.colluders
    return replace(request, minimum_reports=minimum)


def fewest_sites(survey: Survey, route: Route) -> int:
    """Fewer sites than this cannot answer the survey."""
    if route is Route.AGGREGATED:
        return required_survivors(survey)
    return 1 if survey.is_local else survey.minimum_reports


def _check_privacy(survey: Survey, privacy: str) -> None:
    """Raise unless a survey file and the named privacy model agree."""
    by_trust = privacy == "trusted-server" and not survey.privacy.spends_epsilon
    if privacy != survey.privacy.value and not by_trust:
        raise SettingInvalid(
            f"the survey file and privacy={privacy[:40]!r} disagree: the file says "
            f"{survey.guarantee.sentence()!r} Set privacy to what the file is for."
        )


def _check_alone(survey: Survey) -> None:
    """Raise where a survey can only be read together with another, before anybody is asked."""
    if isinstance(survey.step, SecondOfTwo):
        raise SettingInvalid(
            "the second of two surveys is read together with the first; found it alone. Name the "
            "first one's assessment instead, from which the run makes the second: after='FILE'."
        )


class _Values:
    """Typed access to a run's configuration: "" and 0 leave the choice to the planner."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self._config = config

    def text(self, name: str) -> str:
        value = self._config.get(name, "")
        if not isinstance(value, str) or len(value) > 4096:
            raise SettingInvalid(f"{name} must be a text; found a {type(value).__name__}.")
        return value.strip()

    def count(self, name: str, most: int) -> int | None:
        value = self._config.get(name, 0)
        if type(value) is not int or not 0 <= value <= most:
            raise SettingInvalid(
                f"{name} must be a whole number up to {most}; found {str(value)[:40]!r}."
            )
        return value or None

    def colluders(self, sites: int) -> int:
        """As many as sites ask for by default, unless a number is given: 0 is one, too."""
        value = self._config.get("colluders", "")
        if value == "":
            return default_colluders(sites)
        try:
            number = int(str(value)[:12])
        except ValueError:
            number = -1
        if isinstance(value, bool | float) or not 0 <= number < MAX_CLIENTS:
            raise SettingInvalid(
                f"colluders must be a whole number from 0; found {str(value)[:40]!r}."
            )
        return number

    def smallest_cell(self) -> int | None:
        """The planner's, unless a number is given: 0 is one, too."""
        value = self._config.get("smallest-cell", "")
        if value == "":
            return None
        if not str(value)[:12].isdecimal() or isinstance(value, float):
            raise SettingInvalid(
                f"smallest-cell must be a whole number from 0; found {str(value)[:40]!r}."
            )
        return int(str(value)[:12])

    def flag(self, name: str) -> bool:
        value = self._config.get(name, False)
        if type(value) is not bool:
            raise SettingInvalid(f"{name} must be true or false; found {str(value)[:40]!r}.")
        return value

    def seconds(self, name: str) -> int:
        value = self.count(name, _MOST_SECONDS)
        if value is None:
            raise SettingInvalid(f"{name} must be from 1 to {_MOST_SECONDS}; found none.")
        return value

    def rate(self, name: str) -> float | None:
        value = self._config.get(name, 0.0)
        if type(value) not in (int, float):
            raise SettingInvalid(f"{name} must be a number; found a {type(value).__name__}.")
        return float(str(value)) or None

    def fraction(self, name: str) -> Fraction | None:
        value = self._config.get(name, "")
        if value in ("", 0):
            return None
        try:
            return Fraction(str(value)[:40])
        except (ValueError, ZeroDivisionError) as error:
            raise SettingInvalid(
                f"{name} is a number or a fraction such as 1/2; found {str(value)[:40]!r}."
            ) from error

    def thresholds(self) -> tuple[float, ...]:
        value = self._config.get("thresholds", "")
        texts = value.replace(",", " ").split() if isinstance(value, str) else [str(value)]
        try:
            found = tuple(dict.fromkeys(float(text) for text in texts))
        except ValueError as error:
            raise SettingInvalid(
                "thresholds are numbers with spaces between them, such as '0.3 0.5'; found "
                "something else."
            ) from error
        check_thresholds(found)
        return found

    def steps(self) -> Steps:
        """A number is as good as its text."""
        number = self._config.get("steps")
        return (
            Steps(str(number))
            if type(number) is int and number in (1, 2)
            else self.one_of(Steps, "steps")
        )

    def one_of(self, kind: type[_E], name: str) -> _E:
        value = self.text(name)
        members = list(kind)
        for member in members:
            if member.value == (value or members[0].value):
                return member
        raise SettingInvalid(
            f"{name} is one of {', '.join(str(m.value) for m in members)}; found {value[:40]!r}."
        )
