"""A whole federation in one process."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import pairwise

import numpy as np

from fedassay.client import Answer, make_answer
from fedassay.decoding import DecodeOptions, decode
from fedassay.draws import randomised, split_levels
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, IntArray, ScoredClients
from fedassay.histogram import ScoreHistogram
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Keep, Privacy, Unit, UnitKind
from fedassay.patient_rows import check_patients, kept_rows, most_of_a_patient
from fedassay.randomness import Randomness, SimulatedRandomness
from fedassay.shuffler import Shuffler
from fedassay.sites.moment_words import moment_words
from fedassay.survey import Survey
from fedassay.survey_cells import count_rows
from fedassay.tally import MOST_SITE_COUNTERS, MOST_SITES, Tally, TallyBuilder
from fedassay.wire import messages

Progress = Callable[[int], None]


def simulate(
    survey: Survey,
    cohort: ScoredClients,
    *,
    decode_options: DecodeOptions,
    randomness: SimulatedRandomness,
) -> ScoreHistogram:
    """From checked rows to a score histogram; metrics are functions of it."""
    return decode(
        survey, tally_clients(survey, cohort, randomness=randomness), decode_options=decode_options
    )


def tally_clients(
    survey: Survey, cohort: ScoredClients, *, randomness: SimulatedRandomness
) -> Tally:
    """The walk of one example, for all of them at once.

    The tally has the same distribution as that of `tally_each_client`.
    """
    # Examples were checked when the cohort was read. A client gives what the unit allows,
    generator = randomness.generator
    cohort = limited(survey, cohort, randomness=randomness)
    if _keeps_sites(survey, cohort):
        return _tally_sites(survey, cohort, generator)
    # the grid finds leaf cells, for the clients that report on each level,
    leaves, reports = _leaves_per_level(survey, cohort, generator)
    # levels sum cells up, mechanisms randomise what clients send, and the tally is what arrives.
    tally = randomised(survey, leaves, reports=reports, generator=generator)
    return replace(tally, moments=_moments(survey, cohort))


def _moments(survey: Survey, cohort: ScoredClients) -> IntArray:
    """What sites add beside their counts; nothing where a client is a single row."""
    sums = np.zeros(survey.moment_words, dtype=np.int64)
    if survey.moments is not None and cohort.client_of_row is not None:
        for examples in clients(cohort):
            sums += moment_words(survey, count_rows(survey, examples))
    return sums


def check_sites(privacy: Privacy, cohort: ScoredClients) -> None:
    """Raise unless the rows say which site holds each, where sites add the noise."""
    if privacy is Privacy.SITE and cohort.client_of_row is None:
        raise SettingInvalid(
            "under site privacy every site adds the whole noise, so that the rows must say which "
            "site holds each; found no client column. Add clients= (--client COL)."
        )


def _keeps_sites(survey: Survey, cohort: ScoredClients) -> bool:
    """Whether every site's report may be seen, and all of them are few enough to be kept."""
    return (
        survey.reports_may_be_seen
        and not survey.is_local
        and cohort.client_of_row is not None
        and cohort.clients <= MOST_SITES
        and cohort.clients * survey.hierarchy.width <= MOST_SITE_COUNTERS
    )


def _tally_sites(survey: Survey, cohort: ScoredClients, generator: np.random.Generator) -> Tally:
    """Every site's report by its name, and their sum."""
    levels = survey.hierarchy.levels
    sites: dict[str, IntArray] = {}
    for number, examples in enumerate(clients(cohort)):
        leaves = [count_rows(survey, examples)] * levels
        own = randomised(survey, leaves, reports=(1,) * levels, generator=generator)
        sites[site_name(cohort, number)] = own.counters
    counters = sum(sites.values(), np.zeros(survey.hierarchy.width, dtype=np.int64))
    return Tally(survey.fingerprint, (len(sites),) * levels, counters, sites=sites)


def site_name(cohort: ScoredClients, number: int) -> str:
    """What a site is called, or its number from 1 where nobody said."""
    return cohort.names[number] if cohort.names else str(number + 1)


def counted_rows(cohort: ScoredClients, unit: Unit, *, is_local: bool = False) -> int:
    """How many rows a survey with this unit will count, at most."""
    rows = len(cohort.examples)
    match unit.kind:
        case UnitKind.EXAMPLE:
            return rows
        case UnitKind.CLIENT:
            return min(rows, cohort.clients * unit.max_examples)
        case UnitKind.PATIENT:
            return _limited_count(_people(cohort), 1 if is_local else unit.max_examples)


def rows_counted(survey: Survey, cohort: ScoredClients) -> int:
    """How many rows count, where the unit allows only so many of each client or patient."""
    most = 1 if survey.is_local else survey.unit.max_examples
    match survey.unit.kind:
        case UnitKind.EXAMPLE:
            return len(cohort.examples)
        case UnitKind.CLIENT:
            if cohort.client_of_row is None:
                return len(cohort.examples)
            return _limited_count(cohort.client_of_row, most)
        case UnitKind.PATIENT:
            return _limited_count(_people(cohort), most)


def _limited_count(owners: IntArray, most: int) -> int:
    return int(np.minimum(np.bincount(owners), most).sum())


def _people(cohort: ScoredClients) -> IntArray:
    """The number of each row's patient, who is another one at another site."""
    patients, sites = cohort.patient_of_row, cohort.client_of_row
    if patients is None or sites is None:
        raise SettingInvalid(
            "patients are protected inside sites, so that the rows must say whose each is and "
            "which site holds it; found no such columns. Add patients= and clients= "
            "(--patient COL --client COL)."
        )
    pairs = sites * (int(patients.max(initial=0)) + 1) + patients
    people: IntArray = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return people


def limited(survey: Survey, cohort: ScoredClients, *, randomness: Randomness) -> ScoredClients:
    """The rows that the unit lets count: so many of each client or patient."""
    match survey.unit.kind:
        case UnitKind.EXAMPLE:
            kept = cohort
        case UnitKind.CLIENT:
            if cohort.client_of_row is None:
                return cohort
            most = 1 if survey.is_local else survey.unit.max_examples
            return cohort.rows(
                kept_rows(cohort.client_of_row, most, times=None, randomness=randomness)
            )
        case UnitKind.PATIENT:
            check_patients(survey, has_patients=True, has_times=cohort.time_of_row is not None)
            times = cohort.time_of_row if survey.unit.keep is Keep.LATEST else None
            most = most_of_a_patient(survey)
            kept = cohort.rows(kept_rows(_people(cohort), most, times=times, randomness=randomness))
    if kept.client_of_row is None or not survey.is_local:
        return kept
    # Under local privacy every row has a report of its own, and so has a client without.
    silent = kept.clients - len(np.unique(kept.client_of_row)) if survey.allow_empty else 0
    return ScoredClients(kept.examples, None, len(kept.examples) + silent)


def _leaves_per_level(
    survey: Survey, cohort: ScoredClients, generator: np.random.Generator
) -> tuple[list[IntArray], tuple[int, ...]]:
    """Leaf counts and number of the clients that report on each level."""
    levels = survey.hierarchy.levels
    if cohort.client_of_row is None or not isinstance(survey.level_policy, OneLevel):
        counts = count_rows(survey, cohort.examples)
        return split_levels(survey, counts, clients=cohort.clients, generator=generator)
    shares = [float(share) for share in survey.level_policy.client_fractions]
    level_of_client = generator.choice(levels, size=cohort.clients, p=shares)
    level_of_row = level_of_client[cohort.client_of_row]
    leaves = [
        count_rows(survey, cohort.examples.rows(level_of_row == level)) for level in range(levels)
    ]
    return leaves, tuple(np.bincount(level_of_client, minlength=levels).tolist())


def tally_each_client(
    survey: Survey,
    cohort: ScoredClients,
    *,
    randomness: SimulatedRandomness,
    progress: Progress | None = None,
) -> Tally:
    """Make, encode, decode and add every client's report."""
    builder = TallyBuilder(Tally.zero(survey), survey)
    shuffler = Shuffler(survey) if survey.privacy is Privacy.SHUFFLED else None
    if survey.unit.kind is UnitKind.PATIENT:
        cohort = limited(survey, cohort, randomness=randomness)
    for number, examples in enumerate(clients(cohort)):
        counts = count_rows(survey, examples)
        made = make_answer(survey, counts, randomness=randomness, moments=moment_words)
        sent = BytesIO(made.to_bytes())
        for message in messages(sent, survey):
            if shuffler is None:
                builder.add(message, name=site_name(cohort, number))
            else:
                shuffler.add(message)
        if progress is not None:
            progress(1)
    if shuffler is not None:
        for block in messages(BytesIO(Answer(shuffler.batch()).to_bytes()), survey):
            builder.add(block)
    return builder.tally()


def clients(cohort: ScoredClients) -> Iterator[Examples]:
    """Each client's examples, one client after the other."""
    examples = cohort.examples
    if cohort.client_of_row is None:
        for row in range(len(examples)):
            yield examples.rows(slice(row, row + 1))
        return
    order = np.argsort(cohort.client_of_row, kind="stable")
    in_order = examples.rows(order)
    starts = np.searchsorted(cohort.client_of_row[order], np.arange(cohort.clients + 1))
    for first, last in pairwise(starts):
        yield in_order.rows(slice(first, last))


@dataclass(frozen=True, slots=True, eq=False)
class AtOnce:
    """An engine: draws the sum over all clients at once."""

    scored: ScoredClients
    randomness: SimulatedRandomness

    def tally(self, survey: Survey) -> Tally:
        """What arrives, drawn from its distribution."""
        return tally_clients(survey, self.scored, randomness=self.randomness)


@dataclass(frozen=True, slots=True, eq=False)
class EachClient:
    """An engine: makes, sends and adds every client's report for real."""

    scored: ScoredClients
    randomness: SimulatedRandomness

    def tally(self, survey: Survey) -> Tally:
        """What arrives, report by report."""
        return tally_each_client(survey, self.scored, randomness=self.randomness)
