"""Rows as the door takes them: columns, or their names in a table; of one model or of two."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.api_columns import (
    Column,
    client_codes,
    column,
    group_codes,
    groups_of,
    name_of,
    patient_codes,
    time_numbers,
)
from fedassay.errors import LabelInvalid, SettingInvalid
from fedassay.examples import (
    MOST_NAMED,
    Examples,
    FloatArray,
    IntArray,
    ScoredClients,
    client_names,
)
from fedassay.files import as_path
from fedassay.group_names import GroupNames
from fedassay.pair_grid import PairGrid
from fedassay.tables.columns import pair_columns
from fedassay.tables.reading import Columns, read_clients


@dataclass(frozen=True, slots=True)
class Rows:
    """Labels and scores as the door takes them: columns, or names of columns in `data`."""

    y_true: Column
    y_score: Column | Mapping[str, Column]
    data: Any = None
    patients: Column | None = None
    """Whose each row is, where patients are protected."""
    times: Column | None = None
    """When each row was, where the latest of a patient count."""
    group: Column | None = None
    """Which group each row is in, where groups are told apart."""
    pair: PairGrid | None = None
    """The cells of two models, where a survey asks for both: scores then come by their names."""

    @property
    def path(self) -> Path | None:
        """The file that holds the table, where `data` names one."""
        return as_path(self.data) if isinstance(self.data, str | os.PathLike) else None

    @property
    def columns(self) -> Columns:
        """The names of the columns."""
        if isinstance(self.y_score, Mapping):
            named = {
                name: name_of(each, f"y_score[{name!r}]") for name, each in self.y_score.items()
            }
            return pair_columns(replace(self, y_score=next(iter(named.values()))).columns, named)
        return Columns(
            name_of(self.y_score, "y_score"),
            name_of(self.y_true, "y_true"),
            patient=None if self.patients is None else name_of(self.patients, "patients"),
            time=None if self.times is None else name_of(self.times, "times"),
            group=None if self.group is None else name_of(self.group, "group"),
        )

    def patient_numbers(self) -> IntArray | None:
        """The number of each row's patient; a missing one is refused."""
        return None if self.patients is None else patient_codes(self.patients, self.data)

    def time_numbers(self) -> FloatArray | None:
        """When each row was, as numbers that rise with time; a missing one is refused."""
        return None if self.times is None else time_numbers(self.times, self.data)

    def examples(self, groups: GroupNames | None = None) -> Examples:
        """The rows, checked, in the groups that a survey tells apart."""
        if self.path is not None:
            return read_clients(self.path, self.columns).examples
        labels = column(self.y_true, self.data, "y_true")
        if self.pair is not None or isinstance(self.y_score, Mapping):
            return self._both(labels)
        rows = Examples(labels, column(self.y_score, self.data, "y_score")).require_rows()
        if groups is None or self.group is None:
            return rows
        return rows.in_groups(group_codes(self.group, self.data, groups))

    def _both(self, labels: npt.NDArray[np.generic]) -> Examples:
        """The rows with two scores as one, by the joint cells of a survey."""
        given: Any = self.y_score
        names = () if self.pair is None else self.pair.names
        if self.pair is None or not isinstance(given, Mapping) or set(given) != set(names):
            wanted = f"two models, {' and '.join(names)}" if names else "one model"
            raise SettingInvalid(
                f"this survey asks for the scores of {wanted}; found something else. Pass two "
                "models' scores by their names, such as {'a': s1, 'b': s2}, or one column for one."
            )
        first, second = (
            Examples(labels, column(given[name], self.data, f"y_score[{name!r}]"))
            for name in self.pair.names
        )
        return self.pair.examples(first, second).require_rows()

    def scored_clients(self, clients: Column | None) -> ScoredClients:
        """The rows with the client that holds each."""
        if self.path is not None:
            names = self.columns
            owner = None if clients is None else name_of(clients, "clients")
            return read_clients(self.path, replace(names, client=owner))
        groups = None if self.group is None else groups_of(self.group, self.data)
        examples = self.examples(groups)
        patients, times = self.patient_numbers(), self.time_numbers()
        if clients is None:
            return ScoredClients(examples, None, len(examples), (), patients, times, groups)
        codes, called = client_codes(clients, self.data)
        if len(codes) != len(examples):
            raise LabelInvalid(
                f"there must be one client per row; found {len(codes)} clients and "
                f"{len(examples)} rows. Pass columns of the same table."
            )
        count = len(called)
        names_kept = client_names(called) if count <= MOST_NAMED else ()
        return ScoredClients(examples, codes, count, names_kept, patients, times, groups)
