"""Two surveys, one charge: what was announced before the first is all that both spend."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fedassay import Examples, Grid, Polya, Survey, Unit
from fedassay.cut_levels import CutLevels
from fedassay.errors import (
    BudgetExceeded,
    FileInvalid,
    LedgerInvalid,
    SurveyRefused,
    SurveyRepeated,
)
from fedassay.ledger import Budget, Charge, Checkpoint, Ledger, Part, Status, Window, store
from fedassay.ledger.budget import tab_of
from fedassay.ledger.checkpoint import hashes_of, rebuilt, root
from fedassay.ledger.entry import decode
from fedassay.ledger.steps import FirstCharge, SecondCharge, TableDigest, TableReader
from fedassay.mechanisms import UnitKind
from fedassay.survey_steps import SecondOfTwo
from tests.surveys import local_pair, local_survey, second_after, shared_pair

WARD = Part("ward")
FIRST, SECOND = shared_pair()
LOCAL_FIRST, LOCAL_SECOND = local_pair()
ROWS = Examples([0, 1, 1, 0], [0.1, 0.4, 0.9, 0.4])
TABLE = TableDigest.of(ROWS)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "ledger.db")
    made.set_budget(Budget("ward", Fraction(1)))
    return made


def charged(ledger: Ledger) -> list[Fraction | None]:
    return [e.content.epsilon for e in ledger.entries() if isinstance(e.content, Charge)]


def last(ledger: Ledger) -> Charge:
    content = ledger.entries()[-1].content
    assert isinstance(content, Charge)
    return content


def test_the_first_of_two_charges_both_and_the_second_nothing_more(ledger: Ledger) -> None:
    ledger.charge(FIRST, WARD)
    assert charged(ledger) == [1]
    with pytest.raises(BudgetExceeded):
        ledger.charge(local_survey(Fraction(1, 10**6)), WARD)
    ledger.charge(SECOND, WARD)
    assert charged(ledger) == [1, 0]
    assert last(ledger).step == SecondCharge(
        first=FIRST.fingerprint.hex(), spends=Fraction(4, 5), reserved=True
    )
    assert ledger.balances("ward")[0].spent == 1
    ledger.verify()


def test_a_total_that_a_budget_has_no_room_for_is_refused_before_the_first(ledger: Ledger) -> None:
    """The first alone would fit; what it announces does not."""
    ledger.set_budget(Budget("ward", Fraction(9, 10)))
    with pytest.raises(BudgetExceeded, match="this survey asks for 1"):
        ledger.charge(FIRST, WARD)
    assert charged(ledger) == []


def test_what_was_reserved_is_used_once(ledger: Ledger) -> None:
    ledger.set_budget(Budget("ward", Fraction(9)))
    ledger.charge(FIRST, WARD)
    ledger.charge(SECOND, WARD)
    other = second_after(FIRST, Fraction(4, 5), cut=3)
    for survey in (SECOND, other):
        with pytest.raises(SurveyRepeated, match="--again"):
            ledger.charge(survey, WARD)
        ledger.charge(survey, WARD, again=True)
        assert last(ledger).status is Status.AGAIN
    assert charged(ledger) == [1, 0, Fraction(4, 5), Fraction(4, 5)]


def test_the_first_again_spends_its_own_part_while_the_second_waits(ledger: Ledger) -> None:
    """A round that failed after the first was answered: what waits for the second still waits."""
    ledger.set_budget(Budget("ward", Fraction(9)))
    ledger.charge(FIRST, WARD)
    ledger.charge(FIRST, WARD, again=True)
    ledger.charge(SECOND, WARD)
    assert charged(ledger) == [1, Fraction(1, 5), 0]
    # Now nothing waits: a new pair is announced, and paid for.
    ledger.charge(FIRST, WARD, again=True)
    ledger.charge(SECOND, WARD, again=True)
    assert charged(ledger)[3:] == [1, 0]
    assert ledger.balances("ward")[0].spent == Fraction(11, 5)


def test_a_client_that_sees_only_the_second_is_charged_for_it(ledger: Ledger) -> None:
    ledger.charge(SECOND, WARD)
    assert charged(ledger) == [Fraction(4, 5)]
    with pytest.raises(SurveyRepeated):
        ledger.charge(second_after(FIRST, Fraction(4, 5), cut=3), WARD)
    ledger.verify()


@pytest.mark.parametrize(
    "elsewhere",
    [Part("ward", Window.parse("2026-01-01..2026-02-01")), Part("ward", group="a"), Part("icu")],
    ids=["window", "group", "data"],
)
def test_a_reservation_is_for_the_same_part_of_the_data(ledger: Ledger, elsewhere: Part) -> None:
    ledger.set_budget(Budget(None, Fraction(9)))
    ledger.set_budget(Budget("ward", Fraction(9)))
    ledger.charge(FIRST, WARD)
    ledger.charge(SECOND, elsewhere)
    assert charged(ledger) == [1, Fraction(4, 5)]


def stepped(survey: Survey, total: Fraction) -> Survey:
    assert isinstance(survey.step, SecondOfTwo)
    return replace(survey, step=replace(survey.step, total_epsilon=total))


def on_grid(survey: Survey, grid: Grid) -> Survey:
    levels = CutLevels(grid.cells, (((0, 2), (0, 1)),))
    return replace(survey, grid=grid, hierarchy=levels)


HOSTILE: dict[str, tuple[Survey, type[SurveyRefused], str]] = {
    "more epsilon": (
        second_after(FIRST, Fraction(9, 10)),
        BudgetExceeded,
        "epsilon 4/5 reserved for the second survey; this one asks for 9/10",
    ),
    "another total": (stepped(SECOND, Fraction(2)), SurveyRefused, "one total"),
    "another grid": (
        on_grid(SECOND, Grid.explicit([0.0, 0.2, 0.5, 0.75, 1.0])),
        SurveyRefused,
        "keeps every edge",
    ),
    "more cells": (on_grid(SECOND, Grid.uniform(65)), SurveyRefused, "keeps every edge"),
    "another unit": (
        replace(SECOND, unit=Unit(UnitKind.CLIENT, 1)),
        SurveyRefused,
        "has others",
    ),
    "another model": (replace(SECOND, model_digest="ab" * 32), SurveyRefused, "has others"),
    "more colluders": (
        replace(
            SECOND,
            colluders=1,
            mechanisms=(Polya(Fraction(4, 5), 1, 4),),
        ),
        SurveyRefused,
        "has others",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_second_survey_that_is_not_what_was_announced_is_refused(
    ledger: Ledger, name: str
) -> None:
    survey, kind, message = HOSTILE[name]
    ledger.set_budget(Budget("ward", Fraction(99)))
    ledger.charge(FIRST, WARD)
    ledger.charge(LOCAL_FIRST, WARD, table=TABLE)
    for again in (False, True):
        with pytest.raises(kind, match=message):
            ledger.charge(survey, WARD, again=again)
        with pytest.raises(kind, match=message):
            ledger.would_refuse(survey, WARD, again=again)
    assert charged(ledger) == [1, 1]
    ledger.charge(SECOND, WARD)
    assert charged(ledger) == [1, 1, 0]


def test_a_second_survey_may_add_edges_to_the_first_ones(ledger: Ledger) -> None:
    ledger.charge(FIRST, WARD)
    ledger.charge(on_grid(SECOND, Grid.uniform(64)), WARD)
    assert charged(ledger) == [1, 0]


def test_a_second_survey_of_a_foreign_first_uses_nothing_up(ledger: Ledger) -> None:
    foreign, _ = shared_pair(minimum_reports=6)
    ledger.set_budget(Budget("ward", Fraction(9)))
    ledger.charge(FIRST, WARD)
    ledger.charge(second_after(foreign, Fraction(4, 5)), WARD)
    ledger.charge(SECOND, WARD)
    assert charged(ledger) == [1, Fraction(4, 5), 0]


def test_rows_that_answer_one_of_two_spend_the_total_once(ledger: Ledger) -> None:
    ledger.charge(LOCAL_FIRST, WARD, table=TABLE)
    ledger.charge(LOCAL_SECOND, WARD, table=TABLE)
    assert charged(ledger) == [1, 0]
    assert ledger.balances("ward")[0].spent == 1


CHANGES: dict[str, Callable[[], TableDigest | None]] = {
    "a row more": lambda: TableDigest.of(Examples([0, 1, 1, 0, 1], [0.1, 0.4, 0.9, 0.4, 0.5])),
    "a row less": lambda: TableDigest.of(Examples([0, 1, 1], [0.1, 0.4, 0.9])),
    "two rows in each other's place": lambda: TableDigest.of(
        Examples([1, 0, 1, 0], [0.4, 0.1, 0.9, 0.4])
    ),
    "a label": lambda: TableDigest.of(Examples([0, 1, 1, 1], [0.1, 0.4, 0.9, 0.4])),
    "a score's last bit": lambda: TableDigest.of(
        Examples([0, 1, 1, 0], [0.1, 0.4, float(np.nextafter(0.9, 1)), 0.4])
    ),
    "nobody looked": lambda: None,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_changed_between_two_local_surveys_is_refused(
    ledger: Ledger, change: str
) -> None:
    ledger.set_budget(Budget("ward", Fraction(9)))
    ledger.charge(LOCAL_FIRST, WARD, table=TABLE)
    with pytest.raises(SurveyRefused, match="a row might answer both"):
        ledger.charge(LOCAL_SECOND, WARD, table=CHANGES[change](), again=True)
    ledger.charge(LOCAL_SECOND, WARD, table=TABLE)
    assert charged(ledger) == [1, 0]


def test_where_nobody_looked_at_the_table_local_surveys_are_charged_apart(ledger: Ledger) -> None:
    ledger.set_budget(Budget("ward", Fraction(9)))
    ledger.charge(LOCAL_FIRST, WARD)
    ledger.charge(LOCAL_SECOND, WARD, table=TABLE)
    assert charged(ledger) == [1, 1]


def test_shares_of_the_clients_that_overlap_are_refused(ledger: Ledger) -> None:
    """A second survey that asks rows which the first has asked."""
    assert isinstance(LOCAL_SECOND.step, SecondOfTwo)
    greedy = replace(LOCAL_SECOND, step=replace(LOCAL_SECOND.step, client_fraction=Fraction(9, 10)))
    ledger.charge(LOCAL_FIRST, WARD, table=TABLE)
    with pytest.raises(SurveyRefused, match="add up to at most 1; these are 1/5 and 9/10"):
        ledger.charge(greedy, WARD, table=TABLE)


@pytest.mark.parametrize("pair", [(FIRST, SECOND), (LOCAL_FIRST, LOCAL_SECOND)])
def test_who_hands_surveys_out_is_charged_once_for_both(
    ledger: Ledger, pair: tuple[Survey, Survey]
) -> None:
    for survey in pair:
        ledger.charge(survey, WARD, status=Status.ISSUED)
    assert charged(ledger) == [1, 0]


def test_the_hash_of_a_table_does_not_depend_on_how_it_is_read() -> None:
    reader = TableReader()
    for part in (slice(0, 1), slice(1, 3), slice(3, 4)):
        reader.add(ROWS.rows(part))
    assert reader.digest() == TABLE


def test_the_secret_that_seals_a_table_leaves_in_no_entry(ledger: Ledger) -> None:
    ledger.charge(LOCAL_FIRST, WARD, table=TABLE)
    connection = sqlite3.connect(ledger.path)
    ((salt,),) = connection.execute("SELECT salt FROM secret")
    connection.close()
    assert len(salt) == 32
    text = json.dumps([entry.to_json() for entry in ledger.entries()])
    assert salt.hex() not in text
    assert TABLE.digest.hex() not in text
    step = last(ledger).step
    assert isinstance(step, FirstCharge)
    assert step.table is not None
    assert step.table.rows == 4


def test_two_ledgers_seal_the_same_table_differently(tmp_path: Path) -> None:
    seals = set()
    for name in "ab":
        made = Ledger.create(tmp_path / name)
        made.charge(LOCAL_FIRST, WARD, table=TABLE)
        step = last(made).step
        assert isinstance(step, FirstCharge)
        seals.add(step.table)
    assert len(seals) == 2


def test_a_secret_that_was_changed_uses_no_reservation(ledger: Ledger) -> None:
    ledger.charge(LOCAL_FIRST, WARD, table=TABLE)
    connection = sqlite3.connect(ledger.path)
    connection.execute("UPDATE secret SET salt = ?", (os.urandom(32),))
    connection.commit()
    connection.close()
    with pytest.raises(SurveyRefused, match="a row might answer both"):
        ledger.charge(LOCAL_SECOND, WARD, table=TABLE)


def test_a_reservation_outlasts_checkpoints_and_is_used_once_behind_them(tmp_path: Path) -> None:
    """Both ways to know, from the checkpoint and from all entries, agree after every charge."""
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.charge(FIRST, WARD)
    ledger.charge(LOCAL_FIRST, WARD, table=TABLE)
    number = 0

    def grow() -> None:
        nonlocal number
        for _ in range(64):
            number += 1
            ledger.charge(local_survey(Fraction(1), cells=4 + number), WARD)

    grow()
    with pytest.raises(LedgerInvalid, match="changed from outside"), edited_state(ledger):
        ledger.charge(second_after(FIRST, Fraction(9, 10)), WARD)
    for survey in (SECOND, LOCAL_SECOND):
        with store.transaction(ledger.path, writable=False) as reader:
            asked = Charge.of(survey, WARD, Status.CHARGED)
            expected = tab_of(reader.snapshot().entries, "ward").reserved
            key = asked.reservation_key
            assert key is not None
            assert reader.tab("ward", *asked.keys).reserved == {key: expected[key]}
        ledger.charge(survey, WARD, table=TABLE)
        assert last_charge(ledger).epsilon == 0
        grow()
        with pytest.raises(SurveyRepeated):
            ledger.charge(survey, WARD, table=TABLE)
        assert ledger.charge(survey, WARD, table=TABLE, again=True).entry.content is not None
        assert last_charge(ledger).epsilon == survey.epsilon
    kinds = [type(entry.content) for entry in ledger.verify().entries]
    assert kinds.count(Checkpoint) == 3
    assert tab_of(ledger.entries(), "ward").reserved == {}


@contextmanager
def edited_state(ledger: Ledger) -> Iterator[None]:
    """While what the first reserved is more than it was, in the state at the checkpoint."""

    def replaced(old: str, new: str) -> int:
        connection = sqlite3.connect(ledger.path)
        changed = connection.execute(
            "UPDATE state SET content = replace(content, ?, ?) WHERE instr(content, ?)",
            (old, new, old),
        ).rowcount
        connection.commit()
        connection.close()
        return changed

    assert replaced('"left":"4/5"', '"left":"9/9"') == 1
    try:
        yield
    finally:
        replaced('"left":"9/9"', '"left":"4/5"')


def last_charge(ledger: Ledger) -> Charge:
    return [e.content for e in ledger.entries() if isinstance(e.content, Charge)][-1]


def test_a_ledger_without_reservations_has_the_checkpoints_that_it_always_had() -> None:
    """Hash of the state of 63 charges, as fedassay wrote it before there were reservations."""
    charges = [
        Charge.of(local_survey(Fraction(1, 7), cells=2 + n), WARD, Status.CHARGED)
        for n in range(63)
    ]
    assert root(hashes_of(rebuilt(charges))) == OLD_ROOT


OLD_ROOT = "037585aac75d10ddacd20e2d341a05c3730bf26df49454d8865fcb6c37acf68a"

EDITS: dict[str, tuple[str, object]] = {
    "a second that is free": ("epsilon", "1/5"),
    "a step that is not known": ("step", {"kind": "third"}),
    "more left than the total": ("left", "6/5"),
    "more than the total in both": ("spends", "2/5"),
    "a share of nobody": ("client_fraction", "0"),
    "a seal that is none": ("table", {"rows": 4, "seal": "ab"}),
    "rows that are none": ("table", {"rows": -1, "seal": "ab" * 32}),
    "another field": ("salt", "ab" * 32),
    "a grid that is none": ("grid", {"kind": "edges", "edges": [1, 0]}),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_entry_that_says_what_cannot_be_is_refused(ledger: Ledger, name: str) -> None:
    ledger.charge(FIRST, WARD)
    entry = ledger.entries()[-1].to_json()
    content = {key: value for key, value in entry.items() if key not in ("number", "head")}
    decode(content, "an entry")
    field, value = EDITS[name]
    if field in ("epsilon", "step"):
        changed = {**content, field: value if field == "step" else "1/10"}
    else:
        changed = {**content, "step": {**content["step"], field: value}}
    with pytest.raises(FileInvalid):
        decode(changed, "an entry")


def test_a_free_second_survey_is_not_believed_without_its_reservation() -> None:
    """Nobody may write that something cost nothing unless it says who paid."""
    charge = Charge.of(SECOND, WARD, Status.CHARGED)
    text = {
        **charge.to_json(), "epsilon": "0", "time": "2026-01-01T00:00:00+00:00", "who": "x",
        "clock_went_back": False,
    }  # fmt: skip
    with pytest.raises(FileInvalid, match="must be what its charge says"):
        decode(text, "an entry")


def test_two_steps_of_any_split_spend_what_was_announced(tmp_path: Path) -> None:
    """By brute force: the sum of what each answer spends is never above what the ledger says."""
    generator = np.random.default_rng(3)
    for turn in range(6):
        ledger = Ledger.create(tmp_path / f"{turn}.db")
        spent = Fraction(0)
        for _ in range(8):
            first, second = shared_pair(
                Fraction(int(generator.integers(1, 3))),
                spent=Fraction(int(generator.integers(1, 5)), 7),
            )
            survey = (first, second)[int(generator.integers(0, 2))]
            try:
                ledger.charge(survey, WARD, again=bool(generator.integers(0, 2)))
            except SurveyRefused:
                continue
            assert survey.epsilon is not None
            spent += survey.epsilon
            assert ledger.balances("ward")[0].spent >= spent
