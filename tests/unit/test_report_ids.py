"""Report ids: a set in 16 bytes each, however many there are."""

import os
import random
import sys
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import report_ids
from fedassay.errors import ReportDuplicate
from fedassay.report_ids import GrowingIds, ReportIds
from fedassay.tally import Tally, TallyBuilder
from fedassay.tally_file import KeptTally
from tests.surveys import report_of, small_survey

ids = st.frozensets(
    # Few letters, and zeros at the end, which numpy's texts would drop.
    st.lists(st.sampled_from([0, 1, 255]), min_size=16, max_size=16).map(bytes),
    max_size=30,
)


@given(ids)
def test_ids_are_the_set_they_are_made_of(given_ids: frozenset[bytes]) -> None:
    kept = ReportIds.of(given_ids)
    assert list(kept) == sorted(given_ids)
    assert len(kept) == len(given_ids)
    assert all(item in kept for item in given_ids)
    assert kept == ReportIds.of(sorted(given_ids, reverse=True))
    assert ReportIds.from_bytes(kept.to_bytes()) == kept


@given(ids, ids)
def test_ids_join_as_sets_do_and_never_overlap(a: frozenset[bytes], b: frozenset[bytes]) -> None:
    assert all((item in ReportIds.of(a)) == (item in a) for item in b)
    if a & b:
        with pytest.raises(ReportDuplicate, match=f"; {len(a & b)} are there twice"):
            ReportIds.of(a) | ReportIds.of(b)
    else:
        assert list(ReportIds.of(a) | ReportIds.of(b)) == sorted(a | b)


@pytest.mark.parametrize("data", [b"b" * 16 + b"a" * 16, b"a" * 32, b"a" * 17, b"\0"])
def test_ids_that_do_not_rise_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"rise|size"):
        ReportIds.from_bytes(data)


def test_growing_ids_know_all_they_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_ids, "_PENDING", 8)
    source = random.Random(1)  # noqa: S311  # repeatable
    known = {source.randbytes(16) for _ in range(50)}
    growing = GrowingIds(ReportIds.of(known))
    for turn in range(1000):
        item = source.randbytes(16)
        assert item not in growing
        growing.add(item)
        known.add(item)
        assert item in growing
        if turn % 97 == 0:
            assert list(growing.ids()) == sorted(known)
    assert all(item in growing for item in known)
    assert list(growing.ids()) == sorted(known)


halves = st.sampled_from([bytes(8), bytes(7) + b"a", b"a" + bytes(7), b"\xff" * 8])
batches = st.lists(st.lists(st.builds(bytes.__add__, halves, halves), max_size=9), max_size=5)


@given(batches)
def test_of_ids_that_come_in_bulk_exactly_the_first_of_each_is_new(
    given_ids: list[list[bytes]],
) -> None:
    growing, known = GrowingIds(ReportIds()), set[bytes]()
    for batch in given_ids:
        expected = []
        for item in batch:
            expected.append(item not in known)
            known.add(item)
        assert growing.add_new(np.array(batch, "S16")).tolist() == expected
        assert all(item in growing for item in known)
    assert list(growing.ids()) == sorted(known)


REPORTS = 10_000_000 if os.environ.get("FEDASSAY_VERIFY") else 1_000_000


def test_duplicates_are_found_among_millions_of_reports_in_little_memory() -> None:
    """Two collectors' tallies are merged and written; then a bulk file comes a second time."""
    survey = small_survey(4)
    drawn = np.random.default_rng(1).bytes(16 * REPORTS)
    half = 8 * REPORTS
    tracemalloc.start()
    start = time.perf_counter()
    parts = [
        Tally(
            survey.fingerprint,
            (REPORTS // 2,) * survey.hierarchy.levels,
            np.zeros(survey.hierarchy.width, dtype=np.int64),
            ReportIds.of([half_of]),
        )
        for half_of in (drawn[:half], drawn[half:])
    ]
    merged = KeptTally(survey, parts[0] + parts[1])
    written = merged.to_bytes()
    read = KeptTally.from_bytes(written)
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read.tally == merged.tally
    with pytest.raises(ReportDuplicate):
        read.tally + parts[1]
    builder = TallyBuilder(read.tally, survey)
    places = np.random.default_rng(2).choice(REPORTS, 2000, replace=False).tolist()
    again = time.perf_counter()
    for place in places:
        with pytest.raises(ReportDuplicate):
            builder.add(report_of(survey, report_id=drawn[16 * place : 16 * place + 16]))
    each = (time.perf_counter() - again) / len(places)
    assert builder.tally() == read.tally
    sys.stdout.write(
        f"{REPORTS:,} reports: {seconds:.1f} s, peak {peak / 2**20:.0f} MiB, file "
        f"{len(written) / 2**20:.0f} MiB, {1e6 * each:.0f} us to find a duplicate\n"
    )
    assert len(written) < 16 * REPORTS + 10_000
    # Both halves, the whole, its bytes and what is read of them; a Python set has 100 each.
    assert peak < 5 * 16 * REPORTS


def test_a_set_of_bytes_would_not_pass_the_memory_test() -> None:
    drawn = np.random.default_rng(1).bytes(16 * 100_000)
    tracemalloc.start()
    kept = {drawn[16 * i : 16 * i + 16] for i in range(100_000)}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(kept) == 100_000
    assert peak > 5 * 16 * 100_000
