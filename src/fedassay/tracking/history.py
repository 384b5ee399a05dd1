"""A series of assessments of one model: a folder of files, each named by its time."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path

from fedassay.assessment import Assessment
from fedassay.checks import require_type
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.estimate import Estimate
from fedassay.files import as_path
from fedassay.sites.effects import SiteEffects, site_effects

MOST_LOOKS = 2000
_FORMS = {
    "a month": re.compile(r"\d{4}-(0[1-9]|1[0-2])"),
    "a day": re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"),
}
_A_WEEK = 6.0
"""Days between looks, on average, below which they are more often than weekly."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class History:
    """Assessments of one model by time, in order.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> result = fedassay.simulate(labels, scores, seed=0)
    >>> history = History({"2026-09": result}).with_look("2026-10", result)
    >>> history
    <History: 2 looks, 2026-09 to 2026-10>
    >>> len(history.effects("roc_auc"))
    2
    """

    looks: Mapping[str, Assessment]

    def __post_init__(self) -> None:
        require_type(self.looks, Mapping, "a history's looks", 'Write {"2026-10": assessment}.')
        if len(self.looks) > MOST_LOOKS:
            raise SettingInvalid(
                f"a history has at most {MOST_LOOKS:,} looks; found {len(self.looks):,}. Begin "
                "a new one."
            )
        times = list(self.looks)
        for time, assessment in self.looks.items():
            require_type(assessment, Assessment, "a look", "fedassay.load reads files.")
            form_of(time)
        if len({form_of(time) for time in times}) > 1:
            raise SettingInvalid(
                "a history's times are all months or all days; found both. Write all as 2026-10, "
                "or all as 2026-10-05."
            )
        for before, after in pairwise(times):
            if after <= before:
                raise SettingInvalid(
                    f"a history's looks come in the order of time; found {after} after {before}. "
                    "Alarms of the past would change."
                )
        digests = {each.survey.model_digest for each in self.looks.values()} - {None}
        if len(digests) > 1:
            raise SettingInvalid(
                "a history is of one model; found assessments of two (their digests differ). "
                "Begin a new history for the new model."
            )

    def __repr__(self) -> str:
        times = list(self.looks)
        spans = f", {times[0]} to {times[-1]}" if times else ""
        return f"<History: {len(times):,} looks{spans}>"

    def __len__(self) -> int:
        return len(self.looks)

    def __iter__(self) -> Iterator[str]:
        return iter(self.looks)

    def __getitem__(self, time: str) -> Assessment:
        return self.looks[time]

    @property
    def looks_per_year(self) -> int:
        """12 where times are months; where they are days 52, or 366 if they come more often."""
        if not self.looks or form_of(next(iter(self.looks))) == "a month":
            return 12
        days = [date.fromisoformat(time).toordinal() for time in self.looks]
        often = len(days) > 1 and (days[-1] - days[0]) / (len(days) - 1) < _A_WEEK
        return 366 if often else 52

    def with_look(self, time: str, assessment: Assessment) -> "History":
        """One look more, after all others."""
        if time in self.looks:
            raise SettingInvalid(
                f"a history has one look at a time; found a second one for {time}. Name another "
                "time."
            )
        return History({**self.looks, time: assessment})

    def estimates(self, metric: str) -> dict[str, Estimate]:
        """One metric at every time."""
        return {time: assessment[metric] for time, assessment in self.looks.items()}

    def effects(self, metric: str) -> SiteEffects:
        """The same on the scale where errors are normal; times without a figure are listed."""
        return site_effects(metric, self.estimates(metric))

    @classmethod
    def load(cls, folder: str | Path) -> "History":
        """Read a folder of assessments, each named by its time, such as 2026-10.json."""
        where = as_path(folder)
        if not where.is_dir():
            raise FileInvalid(
                f"{where}: a history is a folder; found none there. Begin one with "
                "fedassay track add FOLDER assessment.json --at 2026-10."
            )
        files = sorted(where.glob("*.json"))
        if len(files) > MOST_LOOKS:
            raise FileInvalid(f"{where}: a history has at most {MOST_LOOKS:,} files; found more.")
        return cls({file.stem: Assessment.load(file) for file in files})


def form_of(time: str) -> str:
    """Whether a time is a month or a day; anything else raises.

    >>> form_of("2026-10"), form_of("2026-10-05")
    ('a month', 'a day')
    """
    require_type(time, str, "a time", "Write 2026-10 or 2026-10-05.")
    for name, form in _FORMS.items():
        if form.fullmatch(time) and _exists(time):
            return name
    raise SettingInvalid(
        f"a time is a month or a day; found {time[:40]!r}. Write 2026-10 or 2026-10-05."
    )


def _exists(time: str) -> bool:
    """Whether the calendar has it: not the 30th of February."""
    try:
        date.fromisoformat(time if len(time) > len("2026-10") else f"{time}-01")
    except ValueError:
        return False
    return True
