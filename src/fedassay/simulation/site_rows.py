"""Which sites a simulation shows, and whether they add moments, where nobody said."""

from fedassay.decoding import DecodeOptions
from fedassay.errors import SettingInvalid
from fedassay.examples import ScoredClients
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy, UnitKind
from fedassay.noise import NoNoise
from fedassay.planning.request import Preset, SurveyRequest
from fedassay.simulation.simulate import clients, site_name
from fedassay.sites.between import SeenSites
from fedassay.survey import Survey
from fedassay.survey_cells import all_parts, count_rows
from fedassay.survey_moments import FEWEST_HONEST
from fedassay.tally import MOST_SITES

MOST_WITH_MOMENTS = 200
"""Beyond so many clients moments are added only where they are asked for: they take a while."""


def adds_moments(request: SurveyRequest, cohort: ScoredClients, asked: bool | None) -> bool:
    """Whether sites add moments: as asked, or wherever a secure survey has sites enough."""
    if asked is not None:
        return asked
    fewest = FEWEST_HONEST + request.colluders
    return (
        request.privacy is Privacy.SECURE
        and request.preset is Preset.DEFAULT
        and cohort.client_of_row is not None
        and fewest <= cohort.clients <= MOST_WITH_MOMENTS
        and (request.minimum_reports is None or request.minimum_reports >= fewest)
    )


def check_shown(request: SurveyRequest, cohort: ScoredClients) -> None:
    """Raise unless sites may be shown by their exact counts."""
    if request.privacy is not Privacy.SECURE:
        raise SettingInvalid(
            "sites are shown as if each allowed its exact counts to be seen, which goes with "
            f"secure privacy; found {request.privacy.value}. Under site privacy they are seen "
            "without asking; under distributed and local privacy nobody may see one."
        )
    if cohort.client_of_row is None or cohort.clients > MOST_SITES:
        raise SettingInvalid(
            f"at most {MOST_SITES:,} sites are shown, and rows must say which holds each; found "
            f"{cohort.clients:,} clients. Name the column of sites: clients= (--client COL)."
        )
    if request.unit.kind is not UnitKind.EXAMPLE:
        raise SettingInvalid(
            f"sites that are shown count all of their rows; found {request.unit.kind.value} as the "
            "unit, of which some rows are drawn. Drop one of the two."
        )


def shown_sites(survey: Survey, cohort: ScoredClients, options: DecodeOptions) -> SeenSites:
    """Every site's exact counts in the survey's cells, as if all sites allowed them to be seen."""
    return SeenSites(
        {
            site_name(cohort, number): ScoreHistogram(
                survey.grid.edges,
                all_parts(survey, count_rows(survey, examples)).astype(float),
                NoNoise(),
                options.smooth,
            )
            for number, examples in enumerate(clients(cohort))
        }
    )
