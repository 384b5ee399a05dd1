"""Misuses of the public API: each is refused by a typed error that says what to do instead."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedassay
from fedassay import (
    Answer,
    Assessment,
    Block,
    Budget,
    Calibrator,
    ClientPolicy,
    DecodeOptions,
    Estimate,
    Exact,
    Examples,
    Grid,
    Guarantee,
    Hierarchy,
    Interleaved,
    Law,
    Ledger,
    LedgerAccount,
    Method,
    NotEnoughData,
    OneLevel,
    Part,
    Polya,
    Privacy,
    RandomizedResponse,
    Report,
    ScoreHistogram,
    Survey,
    SurveyDesign,
    SurveyRequest,
    SystemRandomness,
    Tally,
    UnaryEncoding,
    Unit,
    UnitKind,
    Window,
    calibration,
    metrics,
)
from fedassay.api_inputs import SurveySettings
from fedassay.client import answer as answer_examples
from fedassay.errors import (
    ColumnMissing,
    ColumnTypeInvalid,
    FedassayError,
    FileInvalid,
    LabelInvalid,
    NoRows,
    ReportDuplicate,
    ReportForeign,
    ReportMalformed,
    ScoreOutOfRange,
    SettingInvalid,
    SurveyMismatch,
    SurveyRefused,
    TargetImpossible,
    TooFewReports,
    ValueMissing,
)
from fedassay.mechanisms import Neighbours
from fedassay.planning.forecast import ErrorForecast
from fedassay.planning.theory import Case
from fedassay.randomness import SimulatedRandomness

Y, S = [0, 1] * 50, [i / 100 for i in range(100)]
ONE = Fraction(1)
EDGES = np.array([0.0, 1.0])
FRAME = pd.DataFrame({"label": Y, "score": S})
OPEN = ClientPolicy(exact_sums=True, smallest_cell=0)


@dataclass(frozen=True)
class Misuse:
    """A call, the error that it must raise, and words of the remedy."""

    name: str
    call: Callable[[], object]
    error: type[FedassayError]
    says: str


def wrong(name: str, call: Callable[..., object], says: str) -> Misuse:
    return Misuse(name, call, SettingInvalid, says)


@cache
def survey() -> Survey:
    return fedassay.new_survey(minimum_reports=2, smallest_cell=0)


@cache
def local() -> Survey:
    return fedassay.new_survey(privacy="local", epsilon=2, clients=1000)


@cache
def answers() -> list[Answer]:
    return [fedassay.answer(survey(), Y, S, policy=OPEN) for _ in range(3)]


@cache
def result() -> Assessment:
    return fedassay.tally_answers(survey(), answers())


@cache
def histogram() -> ScoreHistogram:
    return ScoreHistogram.from_scores(Y, S)


def simulate(**given: Any) -> object:
    return fedassay.simulate(**{"y_true": Y, "y_score": S, **given})


def forecast() -> ErrorForecast:
    return ErrorForecast(
        value=0.8,
        noise_sd=0.1,
        sampling_sd=0.1,
        binning_bound=0.0,
        binning_sd=0.0,
        binning_bias=0.0,
        half_width=0.2,
    )


def guarantee(**given: Any) -> Guarantee:
    usual = {"epsilon": ONE, "neighbours": Neighbours.REPLACE, "unit": Unit()}
    return Guarantee(**{**usual, "trust": "nobody", "minimum_reports": 1, **given})


def whole_survey(**given: Any) -> Survey:
    usual = {"privacy": Privacy.SECURE, "grid": Grid.uniform(4), "hierarchy": Hierarchy.flat(4)}
    return Survey(**{**usual, "mechanisms": (Exact(),), **given})


any_: Any = object()  # what no checker knows the type of
R: Any = SurveyRequest
E: Any = Examples

REQUESTS = [
    wrong(
        "local as text makes no distributed survey",
        lambda: R(privacy="local", epsilon=1, minimum_reports=1000),
        r"Write Privacy\.LOCAL, or use fedassay\.new_survey",
    ),
    wrong("a rubbish privacy", lambda: R(privacy="rubbish"), r"There are Privacy\.SECURE, Privacy"),
    wrong("a preset as text", lambda: R(preset="paper"), r"Write Preset\.PAPER, or use fedassay"),
    wrong("levels as text", lambda: R(levels="batches"), r"Write LevelChoice\.BATCHES"),
    wrong(
        "epsilon as a float",
        lambda: R(privacy=Privacy.LOCAL, epsilon=5.0),
        r'must be a Fraction.*found 5\.0\. Write Fraction\("5\.0"\)',
    ),
    wrong("epsilon of 0", lambda: R(privacy=Privacy.LOCAL, epsilon=Fraction(0)), "between 0.1 and"),
    wrong(
        "epsilon for exact sums",
        lambda: R(epsilon=ONE),
        "Choose distributed, site or local privacy",
    ),
    wrong("a unit as text", lambda: R(unit="client"), r"be a Unit; .*Write Unit\(UnitKind\.CLIENT"),
    wrong("a threshold alone", lambda: R(thresholds=0.5), r"Write them as \(0\.5,\)"),
    wrong("a threshold of 2", lambda: R(thresholds=(2.0,)), r"must lie in \[0, 1\]; found 2"),
    wrong(
        "clients as a float", lambda: R(clients=1e3), r"whole number.*found 1000\.0\. Pass an int"
    ),
    wrong("true clients", lambda: R(clients=True), "found True. Pass an int"),
    wrong("no clients", lambda: R(clients=0), "found 0. Raise it"),
    wrong("budget weights", lambda: R(budget=(2, 1)), r'Write Fraction\("2"\)'),
    wrong("a budget of 3", lambda: R(budget=(Fraction(2), ONE)), "Divide each by their sum"),
    wrong("a flag as text", lambda: R(allow_empty="no"), "Pass True or False"),
    wrong("dropouts as a float", lambda: R(dropouts=0.1), r'Write Fraction\("0\.1"\)'),
    wrong(
        "a reference as a list", lambda: R(reference=[0.1]), r"Pass Examples\(y, s\), or an array"
    ),
    wrong("a short digest", lambda: R(model_digest="abc"), "Make it with: sha256sum"),
    wrong("a fan-out alone", lambda: R(fanout=2), "Add a height"),
]

EXAMPLES = [
    Misuse("a score of 1.7", lambda: E([0, 1], [0.2, 1.7]), ScoreOutOfRange, "percentages by 100"),
    Misuse("three classes", lambda: E([0, 1, 2], [0.1] * 3), LabelInvalid, "to two classes first"),
    Misuse("two codings", lambda: E([0, -1, 1], [0.1] * 3), LabelInvalid, "to two classes first"),
    Misuse("lengths differ", lambda: E([0, 1], [0.2]), LabelInvalid, "columns of the same table"),
    Misuse("label texts", lambda: E(["a", "b"], S[:2]), ColumnTypeInvalid, "Convert the column"),
    Misuse("score texts", lambda: E([0, 1], ["0", "1"]), ColumnTypeInvalid, "Convert the column"),
    Misuse("both classes", lambda: E([0], [[0.2, 0.8]]), ColumnTypeInvalid, r"proba\[:, 1\]"),
    Misuse("a missing score", lambda: E([0], [float("nan")]), ValueMissing, "Drop these rows"),
    Misuse("a missing label", lambda: E([float("nan")], [0.2]), ValueMissing, "Drop these rows"),
    Misuse("single numbers", lambda: E(0, 0.5), ColumnTypeInvalid, "Pass a list, an array"),
    Misuse("ragged scores", lambda: E([0, 1], [0.1, [1]]), ColumnTypeInvalid, "Pass a list"),
]

CHOICES_AT_THE_DOOR = [
    wrong(
        "privacy",
        lambda: simulate(privacy="lokal"),
        'secure, distributed, site, local, shuffled; .*"local"',
    ),
    wrong(
        "a delta of 1",
        lambda: simulate(privacy="shuffled", epsilon=1, delta=1),
        "delta must lie between 0 and 1",
    ),
    wrong(
        "a delta under local privacy",
        lambda: simulate(privacy="local", epsilon=1, delta=1e-8),
        "delta goes with shuffled privacy",
    ),
    wrong("no privacy", lambda: simulate(privacy=None), "one of secure, distributed, site, local"),
    wrong("preset", lambda: simulate(preset="papr"), 'default, paper; found .* mean "paper"'),
    wrong("levels", lambda: fedassay.new_survey(levels="some"), "one of every, batches"),
    wrong("unit", lambda: fedassay.new_survey(unit="person"), "one of example, client"),
    wrong("setting", lambda: simulate(colour="red"), "one of preset, steps, levels.*'colour'"),
    wrong(
        "a tally's preset", lambda: fedassay.tally_answers(survey(), [], preset=""), "default, p"
    ),
    wrong("calibration", lambda: result().calibrate("isotonik"), 'auto, none.* mean "isotonic"'),
    wrong("calibrating by number", lambda: result().calibrate(any_), "one of auto, none, binning"),
    wrong("a metric", lambda: result()["auc"], r"one of roc_auc.*such as precision@0\.5"),
    wrong("a metric at 2", lambda: result()["precision@2"], r"threshold in \[0, 1\], such as"),
    wrong("a planned metric", lambda: fedassay.plan(clients=9, metric="auk"), "one of roc_auc"),
]

NUMBERS_AT_THE_DOOR = [
    wrong("epsilon 0", lambda: simulate(privacy="local", epsilon=0), "between 0.1 and 10"),
    wrong("epsilon below 0", lambda: simulate(privacy="local", epsilon=-1), "above 0 and at most"),
    wrong("epsilon nan", lambda: simulate(privacy="local", epsilon=float("nan")), "such as 1, 0.5"),
    wrong("epsilon rubbish", lambda: simulate(privacy="local", epsilon="rubbish"), "1, 0.5 or 1/3"),
    wrong("epsilon 1/0", lambda: simulate(privacy="local", epsilon="1/0"), "1, 0.5 or 1/3"),
    wrong("epsilon a list", lambda: simulate(privacy="local", epsilon=[1]), "1, 0.5 or Fraction"),
    wrong("no epsilon", lambda: simulate(privacy="local"), r"epsilon=1 \(--epsilon 1\)"),
    wrong("a threshold above 1", lambda: simulate(thresholds=1.5), r"lie in \[0, 1\]; found 1\.5"),
    wrong("a threshold below 0", lambda: simulate(thresholds=[-0.1]), r"lie in \[0, 1\]; found -0"),
    wrong("a threshold as text", lambda: simulate(thresholds="0.5"), r"Write \[0\.3, 0\.5\]"),
    wrong("a missing threshold", lambda: simulate(thresholds=[None]), "Pass a float"),
    wrong("a seed below 0", lambda: simulate(seed=-1), "Leave it out for other draws"),
    wrong("a seed as text", lambda: simulate(seed="a"), "whole number.*Pass an int"),
    wrong("a survey's seed", lambda: fedassay.new_survey(**any_seed()), "setting is one of preset"),
    wrong("dropouts in words", lambda: simulate(dropouts="half"), "such as 1, 0.5 or 1/3"),
    wrong("no buckets", lambda: simulate(buckets=0), "found 0. Raise it"),
    wrong("weights of 0", lambda: simulate(budget=(0, 1)), r"positive.*Write \(2, 1\)"),
    wrong(
        "noise for nobody",
        lambda: fedassay.new_survey(privacy="distributed", epsilon=1),
        r"minimum_reports=N \(--minimum-reports N\)",
    ),
    wrong(
        "more reports than clients",
        lambda: fedassay.new_survey(
            privacy="distributed", epsilon=1, clients=9, minimum_reports=99
        ),
        "Lower it, or find more clients",
    ),
    wrong(
        "colluders under local privacy",
        lambda: fedassay.new_survey(privacy="local", epsilon=1, clients=100, colluders=1),
        "Drop them",
    ),
    wrong("a plan from nothing", fedassay.plan, r"clients=20000 .*or target_error=0\.005"),
    wrong(
        "a plan without epsilon",
        lambda: fedassay.plan(privacy="local", clients=100),
        r"Add epsilon=1 .*or target_error=0\.005",
    ),
    wrong("an error of 0", lambda: fedassay.plan(clients=9, target_error=0), "number of clients"),
    wrong("power of 80", lambda: fedassay.plan(clients=9, power=80), "Usual is 0.8"),
    Misuse(
        "an error that privacy forbids",
        lambda: fedassay.plan(privacy="local", epsilon=1, target_error=1e-9),
        TargetImpossible,
        "Ask for less, or for a larger epsilon",
    ),
]

TABLES_AT_THE_DOOR = [
    Misuse("empty lists", lambda: fedassay.simulate([], []), NoRows, "Check the file"),
    Misuse("no columns", lambda: fedassay.simulate(any_, any_), ColumnTypeInvalid, "Pass a list"),
    wrong("names, no table", lambda: fedassay.simulate("y", "s"), "Pass the table as data="),
    wrong("a table, no names", lambda: simulate(data=FRAME), "Pass names with data="),
    Misuse(
        "a column that is not there",
        lambda: fedassay.simulate("label", "scores", data=FRAME),
        ColumnMissing,
        'one of label, score; found .* mean "score"',
    ),
    Misuse(
        "a client column that is not there",
        lambda: fedassay.simulate("label", "score", data=FRAME, clients="who"),
        ColumnMissing,
        "one of label, score",
    ),
    wrong("no kind of table", lambda: fedassay.simulate("y", "s", data=5), "Convert it first"),
    Misuse("few clients", lambda: simulate(clients=[1, 2]), LabelInvalid, "of the same table"),
    Misuse("one client", lambda: simulate(clients=5), ColumnTypeInvalid, "one name for each row"),
    Misuse(
        "a reference of 1.7", lambda: simulate(reference=[1.7]), ScoreOutOfRange, "percentages by"
    ),
    Misuse(
        "a table that is no table",
        lambda: fedassay.simulate("y", "s", data="scores.json"),
        FileInvalid,
        "Rename or convert the file",
    ),
]

ANSWERS = [
    Misuse(
        "exact sums by a closed client",
        lambda: fedassay.answer(survey(), Y, S),
        SurveyRefused,
        "or allow exact sums",
    ),
    Misuse("no rows", lambda: fedassay.answer(local(), [], []), NoRows, "Check the file"),
    wrong("a survey as a number", lambda: fedassay.answer(any_, Y, S), "Name a file"),
    wrong("a policy as text", lambda: door(policy="open"), r"Pass ClientPolicy\(\.\.\.\)"),
    wrong("an empty client id", lambda: door(client_id=""), "Leave it out"),
    wrong("a client id as a number", lambda: door(client_id=5), "Pass a text"),
    wrong("an account as a path", lambda: door(account="ledger"), r"Pass LedgerAccount\(ledger"),
    wrong(
        "randomness that repeats",
        lambda: answer_examples(
            local(), Examples(Y, S), randomness=SimulatedRandomness(0), policy=OPEN
        ),
        r"Use fedassay\.simulate to simulate",
    ),
    wrong("an answer alone", lambda: tally(answers()[0]), r"Write \[answer\]"),
    wrong("a path alone", lambda: tally("answers"), r"Write \[answer\]"),
    wrong("a number as an answer", lambda: tally([5]), r"its bytes, or a path.*Pass those"),
    Misuse("no answers", lambda: tally([]), NoRows, r"Pass what fedassay\.answer made"),
    Misuse("rubbish bytes", lambda: tally([b"rubbish"]), ReportMalformed, "send it again"),
    Misuse(
        "an answer twice", lambda: tally([answers()[0]] * 2), ReportDuplicate, "counted the first"
    ),
    Misuse(
        "answers of another survey",
        lambda: fedassay.tally_answers(local(), answers()),
        SurveyMismatch,
        "its own survey file",
    ),
    Misuse(
        "bytes of another survey",
        lambda: fedassay.tally_answers(local(), [answers()[0].to_bytes()]),
        ReportForeign,
        "its own survey",
    ),
    Misuse(
        "one answer of two",
        lambda: tally(answers()[:1]).to_dict(),
        TooFewReports,
        "Wait for 1 more",
    ),
]

LOW_LEVEL = [
    wrong("fit by text", lambda: calibration.fit(histogram(), any_text("isotonic")), "Method.ISO"),
    wrong("fit to a list", lambda: calibration.fit(any_), r"ScoreHistogram\.from_scores\(y, s\)"),
    wrong("fit, perhaps", lambda: fit(monotone="yes"), "Pass True or False"),
    wrong("a metric of a list", lambda: metrics.roc_auc(any_), r"ScoreHistogram\.from_scores"),
    wrong("precision of a list", lambda: metrics.precision(any_, 0.5), r"ScoreHistogram\.from_sco"),
    wrong("a curve of a list", lambda: metrics.roc_curve(any_), r"ScoreHistogram\.from_scores"),
    wrong("ece of a list", lambda: calibration.ece(any_), r"ScoreHistogram\.from_scores"),
    wrong("ece with no bins", lambda: calibration.ece(histogram(), bins=0), "Usual are 10 to 20"),
    wrong(
        "ece of bins by text",
        lambda: calibration.ece(histogram(), strategy=any_text("width")),
        r"Write Bins\.WIDTH",
    ),
    wrong("a metric at 2", lambda: metrics.recall(histogram(), 2), r"in \[0, 1\]; found 2"),
    wrong("an interval of 95", lambda: result()["roc_auc"].interval(95), "Write 0.95 for 95 %"),
    wrong("an interval of 1", lambda: Estimate(0.7).interval(1), "Usual is 0.95"),
    wrong("no data at 95", lambda: NotEnoughData().interval(95), "Write 0.95 for 95 %"),
    wrong("a forecast at 95", lambda: forecast().error_quantile(95), "Write 0.95 for 95 %"),
    wrong("a band of 95", lambda: metrics.roc_curve(histogram()).band(95), "Write 0.95 for 95 %"),
    wrong("an estimate as text", lambda: Estimate(any_text("0.7")), "Pass a float"),
    wrong("an error below 0", lambda: Estimate(0.7, noise_sd=-1), "0 or more"),
    wrong(
        "a shape as text", lambda: Estimate(0.7, shape=any_text("plain")), r"Write Shape\.PLAIN\."
    ),
    wrong("a reason as a number", lambda: NotEnoughData(reason=any_), "Say it in words"),
    wrong("edges as a list", lambda: ScoreHistogram(any_, any_), r"np\.asarray\(\.\.\., dtype="),
    wrong("counts of another shape", lambda: ScoreHistogram(EDGES, EDGES), r"of shape \(2, 1\)"),
    wrong("noise as text", lambda: counted(noise="none"), "Leave it out for exact counts"),
    wrong("perhaps smooth", lambda: counted(smooth=1), "Pass True or False"),
    wrong(
        "a grid as a number", lambda: ScoreHistogram.from_scores(Y, S, grid=any_), "Write Grid.u"
    ),
    wrong("counting a list", lambda: Grid.uniform(4).count(any_), r"Pass Examples\(y, s\)"),
    Misuse("a cell for 1.7", lambda: Grid.uniform(4).locate([1.7]), ScoreOutOfRange, "percentages"),
    wrong("a grid without its end", lambda: Grid(np.array([0.0, 0.5])), "Add the ends"),
    wrong("a grid of text", lambda: Grid(any_text("abc")), r"Use Grid\.uniform\(cells\)"),
    wrong("a grid by text", lambda: Grid.by_rule(any_text("fine")), r"Use Grid\.uniform\(cells\)"),
    wrong("half a cell", lambda: Grid.uniform(any_text("0.5")), "Pass an int"),
    wrong("a threshold at 1", lambda: Grid.given_classifier(1.0), "every score falls on one side"),
    wrong("one edge alone", lambda: Grid.uniform(4).with_edges_at(any_), r"them as \[0\.5\]"),
    wrong("an edge beyond 1", lambda: Grid.uniform(4).with_edges_at([2]), r"lie in \[0, 1\]"),
    wrong(
        "fan-outs as a list", lambda: Hierarchy(8, any_text([2, 4])), r"Write them as \(2, 2, 2\)"
    ),
    wrong("fan-outs too small", lambda: Hierarchy(8, (2, 2)), "Change the fan-outs"),
    wrong("a fan-out of 1", lambda: Hierarchy(8, (8, 1)), "Drop that level"),
    wrong("leaves as a grid", lambda: Interleaved(any_, 3), "Pass an int"),
    wrong("one level of ints", lambda: OneLevel(any_text((1, 2))), r'Write Fraction\("1"\)'),
    wrong("a float epsilon to Polya", lambda: Polya(any_text(1.0), 1, 9), r'Fraction\("1\.0"\)'),
    wrong("no noise shares", lambda: Polya(ONE, 1, 0), "found 0. Raise it"),
    wrong("no sensitivity", lambda: Polya(ONE, 0, 9), "found 0. Raise it"),
    wrong("a float to GRR", lambda: RandomizedResponse(any_text(1.0), 4), r'Fraction\("1\.0"\)'),
    wrong("no cells in GRR", lambda: RandomizedResponse(ONE, 0), "found 0. Raise it"),
    wrong("epsilon below 0 to OUE", lambda: UnaryEncoding(-ONE), "between 0.1 and 10"),
    wrong("a unit's kind as text", lambda: Unit(any_text("client")), r"Write UnitKind\.CLIENT"),
    wrong("many examples, one unit", lambda: Unit(UnitKind.EXAMPLE, 5), "Use the client unit"),
    wrong("a law in words", lambda: Law(any_text("a"), 0, 0, 0), "Pass a float"),
    wrong("a law without gain", lambda: Law(0.0, 0.0, 1.0, 0.0), r"Ask a mechanism for its law"),
    wrong("a float guarantee", lambda: guarantee(epsilon=1.0), r'Write Fraction\("1\.0"\)'),
    wrong("a delta of 1", lambda: guarantee(delta=ONE), "below one over the number of clients"),
    wrong(
        "a survey of text", lambda: whole_survey(privacy="secure"), r"fedassay\.new_survey takes"
    ),
    wrong("noise that is not there", lambda: whole_survey(privacy=Privacy.LOCAL), "LocalMechanism"),
    wrong("other leaves", lambda: whole_survey(grid=Grid.uniform(8)), "grid's 8 cells"),
    wrong("a tally of parts", lambda: Tally(b"x", (1,), any_), r"Start from Tally\.zero\(survey\)"),
    wrong("a tally of no survey", lambda: Tally.zero(any_), r"fedassay\.load reads survey files"),
    wrong(
        "a tally and a number", lambda: result().tally + any_, r"Use Tally\.of\(survey, reports\)"
    ),
    Misuse(
        "tallies of two surveys",
        lambda: result().tally + Tally.zero(local()),
        SurveyMismatch,
        "Tally each survey by itself",
    ),
    wrong("a report of numbers", lambda: Report(any_, any_, any_), r"with fedassay\.answer"),
    wrong("a block of counters", lambda: Block(b"1" * 32, b"2" * 16, EDGES, 0), "fedassay.answer"),
    wrong("an answer of text", lambda: Answer(any_text("abc")), r"Make it with fedassay\.answer"),
    wrong("a calibrator by text", lambda: mapped(method="isotonic"), r"Write Method\.ISOTONIC"),
    wrong("lines by text", lambda: mapped(interpolation="linear"), r"an Interpolation; .*\.LINEAR"),
    wrong("a map as lists", lambda: mapped(edges=[0, 1]), r"Use np\.asarray"),
    wrong("a map beyond 1", lambda: mapped(values=2 * EDGES), "They are probabilities"),
    wrong("a map that goes back", lambda: mapped(edges=EDGES[::-1]), "Sort them and drop repeats"),
    wrong("a map's parameters", lambda: mapped(parameters={"a": "b"}), "Pass a float"),
    wrong("a map's reason", lambda: mapped(reason=3), "Say it in words"),
    Misuse(
        "calibrating 1.7", lambda: mapped().predict([1.7]), ScoreOutOfRange, "Divide percentages"
    ),
    wrong("a float policy", lambda: policy(largest_epsilon=1.0), r'Write Fraction\("1\.0"\)'),
    wrong("a wide policy", lambda: policy(largest_epsilon=Fraction(99)), "at most 10"),
    wrong("a policy's half cell", lambda: policy(smallest_cell=0.5), "smallest_cell must be"),
    wrong("a vague policy", lambda: policy(exact_sums="yes"), "Pass True or False"),
    wrong("digests as a list", lambda: policy(model_digests=["0" * 64]), r"Write frozenset\("),
    wrong("no crowd at all", lambda: policy(smallest_cohort=0), "found 0. Raise it"),
    wrong("no buckets to decode", lambda: DecodeOptions(buckets=0), "found 0. Raise it"),
    wrong("an assessment of text", lambda: assessed(survey="s"), r"fedassay\.load reads files"),
    wrong("an assessment's list", lambda: assessed(thresholds=[0.5]), r"Write them as \(0\.5,\)"),
    Misuse(
        "a tally of another survey",
        lambda: assessed(survey=local()),
        SurveyMismatch,
        "the survey file it was made with",
    ),
    wrong("a design of numbers", lambda: SurveyDesign(any_, any_), r"Use design_survey\(request\)"),
    wrong("a case in words", lambda: Case(any_text("local"), 1000), r"Write Privacy\.LOCAL"),
    wrong("a case of nobody", lambda: Case(Privacy.LOCAL, 0), "Raise it"),
]

LEDGERS = [
    wrong("a budget as a float", lambda: Budget("ward-3", any_text(5.0)), r'Fraction\("5\.0"\)'),
    wrong("a budget below 0", lambda: Budget("ward-3", -ONE), "Use 0 to spend nothing"),
    wrong("a budget's unit as text", lambda: budget(unit="client"), r"Write UnitKind\.CLIENT"),
    wrong("a budget's delta of 1", lambda: budget(delta=ONE), "over the number of clients"),
    wrong(
        "windows per client", lambda: budget(unit=UnitKind.CLIENT, split_windows=True), "Use unit"
    ),
    wrong(
        "a window alone",
        lambda: budget(window=Window.parse("2026-01-01..")),
        r"split_windows=True \(--split windows\)",
    ),
    wrong("a window as text", lambda: Part("ward-3", any_text("2026")), r"Use Window\.parse"),
    wrong("an empty data id", lambda: Part(""), "data id"),
    wrong("a window of texts", lambda: Window(any_text("2026")), r"Use Window\.parse"),
    wrong("a window without dots", lambda: Window.parse("2026"), r"2026-01-01\.\.2026-02-01"),
    wrong("a window backwards", lambda: Window.parse("2026-02-01..2026-01-01"), "Swap the two"),
    wrong("a window nowhere", lambda: Window(datetime(2026, 1, 1)), "Write UTC"),
    wrong("a ledger by text", lambda: Ledger(any_text("l")), r"Write pathlib\.Path"),
    wrong("an account of text", lambda: LedgerAccount(any_, Part("a")), r"Ledger\(path\)"),
    wrong(
        "a part as text",
        lambda: LedgerAccount(Ledger(Path("l")), any_text("a")),
        r'Write Part\("ward-3"\)',
    ),
]

MISUSES = {
    f"{table}: {misuse.name}": misuse
    for table, misuses in {
        "request": REQUESTS,
        "examples": EXAMPLES,
        "choice": CHOICES_AT_THE_DOOR,
        "number": NUMBERS_AT_THE_DOOR,
        "table": TABLES_AT_THE_DOOR,
        "answer": ANSWERS,
        "value": LOW_LEVEL,
        "ledger": LEDGERS,
    }.items()
    for misuse in misuses
}


def any_text(value: object) -> Any:
    return value


def any_seed() -> Any:
    return {"seed": 1}


def door(**given: Any) -> object:
    return fedassay.answer(survey(), Y, S, **{"policy": OPEN, **given})


def tally(given: Any) -> Assessment:
    return fedassay.tally_answers(survey(), given)


def fit(**given: Any) -> object:
    return calibration.fit(histogram(), **given)


def counted(**given: Any) -> object:
    return ScoreHistogram(EDGES, np.zeros((2, 1)), **given)


def mapped(**given: Any) -> Calibrator:
    usual = {"method": Method.ISOTONIC, "edges": EDGES, "values": EDGES}
    return Calibrator(**{**usual, **given})


def policy(**given: Any) -> object:
    return ClientPolicy(**given)


def assessed(**given: Any) -> object:
    usual = {"survey": survey(), "tally": result().tally, "decode_options": DecodeOptions()}
    return Assessment(**{**usual, **given})


def budget(**given: Any) -> object:
    return Budget(**{"data": "ward-3", "epsilon": ONE, **given})


@cache
def refusal(name: str) -> FedassayError:
    with pytest.raises(FedassayError) as refused:
        MISUSES[name].call()
    return refused.value


@pytest.mark.parametrize("name", MISUSES)
def test_a_misuse_is_refused_with_its_remedy(name: str) -> None:
    misuse, error = MISUSES[name], refusal(name)
    assert type(error) is misuse.error
    assert re.search(misuse.says, str(error))
    assert len(str(error)) < 500


def test_the_table_of_misuses_is_long_and_names_each_once() -> None:
    listed = [REQUESTS, EXAMPLES, CHOICES_AT_THE_DOOR, NUMBERS_AT_THE_DOOR, TABLES_AT_THE_DOOR]
    listed += [ANSWERS, LOW_LEVEL, LEDGERS]
    assert len(MISUSES) == sum(map(len, listed)) >= 60


def test_what_is_not_misused_is_accepted() -> None:
    """The usual values that the table changes are good ones: each refusal is for its change."""
    assert whole_survey().is_exact
    assert guarantee().epsilon == 1
    assert forecast().error_quantile(0.95) > 0.1
    assert mapped().predict([0.25]).tolist() == [0.25]
    assert result().reports == 3
    for good in (policy, budget, assessed, counted, fit, door, simulate):
        good()


def test_a_seed_goes_to_simulate_alone() -> None:
    """Python itself refuses it, before anything is read or drawn."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'seed'"):
        fedassay.answer(local(), Y, S, **any_seed())
    assert "seed" not in SurveySettings.__annotations__


@pytest.mark.parametrize(
    "rows", [[0.7312345], 0.7312345, (0.7312345,), {"s": 0.7312345}, np.array([0.7312345])]
)
def test_a_client_that_passes_rows_in_the_wrong_place_hears_no_score(rows: object) -> None:
    given: Any = rows
    own = {"randomness": SystemRandomness(), "policy": OPEN}
    calls: list[Callable[[], object]] = [
        lambda: answer_examples(survey(), given, **own),  # type: ignore[arg-type]  # settings by name
        lambda: Grid.uniform(4).count(given),
        lambda: metrics.roc_auc(given),
        lambda: fedassay.answer(survey(), Y, given, policy=OPEN),
        lambda: fedassay.answer(survey(), given, S, policy=OPEN),
        lambda: fedassay.answer(survey(), given, given, data=FRAME, policy=OPEN),
    ]
    for call in calls:
        with pytest.raises(FedassayError) as refused:
            call()
        assert "0.73" not in str(refused.value)


def test_remedies_at_the_door_name_what_python_takes() -> None:
    """An option of the command line stands beside the argument, never alone."""
    for name in MISUSES:
        message = str(refusal(name))
        if "--" in message:
            assert "=" in message or "(--" in message, message


def test_a_naive_window_is_refused_and_one_in_utc_is_not() -> None:
    assert Window(datetime(2026, 1, 1, tzinfo=UTC)).first.year == 2026
