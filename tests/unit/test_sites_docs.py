"""docs/sites.md says what is so."""

import re

from fedassay import sites
from fedassay.sites import moments
from tests.tables import ROOT

PAGE = (ROOT / "docs" / "sites.md").read_text()


def test_ranges_and_steps_are_those_of_the_code() -> None:
    rows = re.findall(r"\| ([\w ]+) \| (-?\d+) to (\d+) \| 2\^-(\d+) \| 2\^-(\d+) \|", PAGE)
    assert [name for name, *_ in rows] == ["effect", "its square", "variance", "its square"]
    tops = (
        moments.LARGEST_EFFECT,
        moments.LARGEST_EFFECT**2,
        moments.LARGEST_VARIANCE,
        moments.LARGEST_VARIANCE**2,
    )
    assert [float(high) for _, _, high, _, _ in rows] == list(tops)
    for most, column in ((63, 3), (1023, 4)):
        steps = moments.FixedPoint(most).steps
        assert steps == tuple(2 ** int(row[column]) for row in rows)


def test_every_name_on_the_page_is_exported_or_documented() -> None:
    names = set(re.findall(r"`([a-z_]+|[A-Z]\w+)(?:\(.*?\))?`", PAGE))
    # Options, privacy models and names in JSON.
    others = {"fewest", "never_narrower", "site", "secure", "distributed", "local", "simulate"}
    others |= {"tally", "show", "sites", "heterogeneity", "average_precision", "notes", "left_out"}
    others |= {"mean", "low", "high", "tau", "i2", "prediction_low", "prediction_high"}
    known = set(dir(sites)) | set(dir(moments)) | others
    assert len(names) > 12
    assert {name for name in names if name not in known} == set()
