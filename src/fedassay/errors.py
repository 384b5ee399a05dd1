"""Every error that fedassay raises on purpose, in one tree.

FedassayError
├── DataError               a scored table breaks a rule
│   ├── ScoreOutOfRange
│   ├── ValueMissing
│   ├── LabelInvalid
│   ├── SingleClass
│   ├── NoRows
│   ├── ColumnMissing
│   └── ColumnTypeInvalid
├── SettingInvalid          a parameter breaks a rule
│   └── TargetImpossible    no setting reaches the wanted error
├── FileInvalid             a file cannot be read, or is not what it should be
│   └── LedgerInvalid       a ledger that must not be relied on
│       └── LedgerRolledBack
├── LedgerUnwritable        a charge cannot be recorded, so nothing is answered
├── WireError               a report that must not be counted
│   ├── ReportMalformed
│   ├── ReportTooLarge
│   ├── ReportForeign
│   ├── ReportDuplicate
│   └── SiteDuplicate
├── SecAggError             secure aggregation stops here
│   ├── MessageMalformed
│   ├── MessageTooLarge
│   ├── RoundMismatch
│   ├── TermsRefused
│   ├── CohortTooSmall
│   ├── KeyInvalid
│   ├── SignatureInvalid
│   ├── SealBroken
│   ├── StageRefused
│   ├── UnmaskRefused
│   ├── StateStale
│   └── RoundAborted
├── CountOverflow           sums beyond what secure aggregation can carry
├── SurveyMismatch          two things that belong to different surveys
├── SurveyRefused           a client declines a survey
│   ├── BudgetExceeded
│   │   └── BudgetMissing
│   └── SurveyRepeated
├── TooFewReports           decoding now would break a promise
│   └── TooFewRows          a published count would be below the smallest cell
├── TallyClosed             adding to what was released would break one
├── EngineFailed            an engine that counts elsewhere cannot be started, or gave up
└── MissingExtra            a package that this needs is not installed

A message names the rule, what was found, and the remedy. On a client it never
holds a score, a label or a row.
"""


class FedassayError(Exception):
    """Base of all errors raised on purpose."""


class DataError(FedassayError):
    """A scored table breaks a rule."""


class ScoreOutOfRange(DataError):
    """A score is infinite or outside [0, 1]."""


class ValueMissing(DataError):
    """A row lacks its score or its label: an empty cell, a null or NaN."""


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


class LedgerInvalid(FileInvalid):
    """A ledger is missing, foreign, damaged, changed from outside or of another version."""


class LedgerRolledBack(LedgerInvalid):
    """A ledger lacks entries that it is known to have had."""


class LedgerUnwritable(FedassayError):
    """A ledger cannot be written to: full disk, no permission, or held by another."""


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


class SiteDuplicate(WireError):
    """Another report of this site is already in the tally."""


class SecAggError(FedassayError):
    """Secure aggregation stops here; nothing was given away by stopping."""


class MessageMalformed(SecAggError):
    """The bytes are not the message that this stage expects."""


class MessageTooLarge(SecAggError):
    """The bytes are more than this stage's message can be."""


class RoundMismatch(SecAggError):
    """The message belongs to another round, survey or set of terms."""


class TermsRefused(SecAggError):
    """A client declines a round's terms."""


class CohortTooSmall(SecAggError):
    """Fewer clients than the terms, the survey or the client's policy ask for."""


class KeyInvalid(SecAggError):
    """A key is unknown, repeated, of low order, or not the one that was committed to."""


class SignatureInvalid(SecAggError):
    """A signature is not by the pinned identity, or not on these bytes."""


class SealBroken(SecAggError):
    """A sealed share was altered, or was sealed for somebody else."""


class StageRefused(SecAggError):
    """A stage is answered once, in order."""


class UnmaskRefused(SecAggError):
    """Answering would reveal more than the sum over the agreed survivors."""


class StateStale(SecAggError):
    """A round's stored state is an older copy, or the round was taken part in before."""


class RoundAborted(SecAggError):
    """Too few clients are left to unmask the sum; nothing was revealed."""


class CountOverflow(FedassayError):
    """A sum reached 2^31."""


class SurveyMismatch(FedassayError):
    """Two values belong to different surveys and cannot be combined."""


class SurveyRefused(FedassayError):
    """The client declines to answer this survey."""


class BudgetExceeded(SurveyRefused):
    """The survey would spend more than a budget of the ledger has left."""


class BudgetMissing(BudgetExceeded):
    """The ledger has limits, and none was set for this data: not even that there is none."""


class SurveyRepeated(SurveyRefused):
    """The survey was charged before on the same data."""


class TooFewReports(FedassayError):
    """Fewer reports than the survey's guarantee needs."""


class TooFewRows(TooFewReports):
    """Fewer rows of a label than the smallest cell that a survey publishes."""


class TallyClosed(FedassayError):
    """Adding reports to a released tally, or releasing a part of one, would break a promise."""


class EngineFailed(FedassayError):
    """An engine that counts elsewhere cannot be started, or gave up; nothing was answered."""


class MissingExtra(FedassayError, ImportError):
    """A package that comes with an extra is not installed; the message names both."""
