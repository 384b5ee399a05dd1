"""Fixtures: real tables, and hypothesis settings that repeat."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from fedassay.engines import departure
from tests.clock import Clock
from tests.tables import Table, read_table, table_paths

settings.register_profile(
    "fedassay",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
# Of a planted bug one counterexample is enough: the smallest one may take minutes to find.
settings.register_profile(
    "planted", settings.get_profile("fedassay"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("fedassay")
WAITS_LONGEST = ("test_flower.py",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A federation of real processes comes first: it waits, and others compute meanwhile."""
    items.sort(key=lambda item: item.path.name not in WAITS_LONGEST)


@pytest.fixture(autouse=True)
def _answers_leave_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the tests' own process nobody waits for the end of a slot."""
    monkeypatch.setattr(departure, "time", Clock())


@pytest.fixture(scope="session", params=table_paths(), ids=lambda path: path.stem)
def real_table(request: pytest.FixtureRequest) -> Table:
    path: Path = request.param
    return read_table(path)


@pytest.fixture(scope="session")
def sample() -> Table:
    return read_table(table_paths()[0])
