"""Every error that fedassay raises on purpose, in one tree.

FedassayError
├── DataError               a scored table breaks a rule
│   ├── ScoreOutOfRange
│   ├── LabelInvalid
│   ├── SingleClass
│   ├── NoRows
│   ├── ColumnMissing
│   └── ColumnTypeInvalid
├── SettingInvalid          a parameter breaks a rule
│   └── TargetImpossible    no setting reaches the wanted error
├── FileInvalid             a file cannot be read, or is not what it should be
├── WireError               a report that must not be counted
│   ├── ReportMalformed
│   ├── ReportTooLarge
│   ├── ReportForeign
│   └── ReportDuplicate
├── CountOverflow           sums beyond what secure aggregation can carry
├── SurveyMismatch          two things that belong to different surveys
├── SurveyRefused           a client declines a survey
└── TooFewReports           decoding now would break a promise

A message names the rule, what was found, and the remedy. On a client it never
holds a score, a label or a row.
"""


class FedassayError(Exception):
    """Base of all errors raised on purpose."""


class DataError(FedassayError):
    """A scored table breaks a rule."""


class ScoreOutOfRange(DataError):
    """A score is NaN, infinite or outside [0, 1]."""


class LabelInvalid(DataError):
    """Labels are not {0, 1}, {-1, 1} or booleans."""


class SingleClass(DataError):
    """All labels are the same, so most metrics are undefined."""


class NoRows(DataError):
    """There is nothing to count."""


class ColumnMissing(DataError):
    """A named column is not in the table."""


class ColumnTypeInvalid(DataError):
    """A column holds values of the wrong type."""


class SettingInvalid(FedassayError, ValueError):
    """A parameter breaks a rule."""


class TargetImpossible(SettingInvalid):
    """No setting reaches the wanted error; says which floor stands in the way."""


class FileInvalid(FedassayError):
    """A file is unreadable, too large, of another kind or of another version."""


class WireError(FedassayError):
    """A report that must not be counted."""


class ReportMalformed(WireError):
    """The bytes are not a well-formed report."""


class ReportTooLarge(WireError):
    """The bytes are more than this survey's reports can be."""


class ReportForeign(WireError):
    """The report answers another survey."""


class ReportDuplicate(WireError):
    """A report with this id is already in the tally."""


class CountOverflow(FedassayError):
    """A sum reached 2^31."""


class SurveyMismatch(FedassayError):
    """Two values belong to different surveys and cannot be combined."""


class SurveyRefused(FedassayError):
    """The client declines to answer this survey."""


class TooFewReports(FedassayError):
    """Fewer reports than the survey's guarantee needs."""
