"""A client's answer to a question about classes: checked, charged once, and drawn blindly."""

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from fedassay.classes.answers import PartDraw, answer_classes, check_class_policy
from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    ClassSurvey,
)
from fedassay.classes.class_tally import ClassTallyBuilder, KeptClassTally
from fedassay.classes.design import design_classes
from fedassay.classes.encodings import PartKind
from fedassay.classes.survey_file import (
    class_fingerprint,
    class_survey_from_json,
    class_survey_json,
)
from fedassay.client import OPEN_POLICY, ClientPolicy
from fedassay.errors import (
    FileInvalid,
    LabelInvalid,
    ReportDuplicate,
    SurveyRefused,
    TallyClosed,
    TooFewReports,
)
from fedassay.ledger import Charge, Ledger, LedgerAccount, Part
from fedassay.ledger.entry import Budget
from fedassay.mechanisms import Privacy, Unit, UnitKind
from fedassay.mechanisms.sampling import Dice
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness, SystemRandomness
from tests.class_rows import drawn_rows

ROWS = drawn_rows(300)


def survey_of(
    privacy: Privacy, epsilon: int | None, design: ClassDesign | None = None, **more: object
) -> ClassSurvey:
    asked = {"clients": 20, "examples": 6000, "dropouts": Fraction(0), **more}
    request = SurveyRequest(
        privacy=privacy,
        epsilon=None if epsilon is None else Fraction(epsilon),
        **asked,  # type: ignore[arg-type]
    )
    return design_classes(request, ROWS.names, design=design)


EVERY = survey_of(Privacy.DISTRIBUTED, 1, ClassDesign.EVERY)
DRAWN = survey_of(Privacy.DISTRIBUTED, 1, ClassDesign.DRAWN)
LOCAL = survey_of(Privacy.LOCAL, 4, ClassDesign.OWN)


def account_in(folder: Path, epsilon: Fraction) -> LedgerAccount:
    ledger = Ledger.create(folder / "ledger.db")
    ledger.set_budget(Budget("ward", epsilon=epsilon))
    return LedgerAccount(ledger, Part("ward"))


def test_a_client_answers_every_part_or_the_one_that_it_draws() -> None:
    made = answer_classes(EVERY, ROWS, randomness=SystemRandomness(), policy=ClientPolicy())
    assert [m.fingerprint for m in made.messages] == [p.survey.fingerprint for p in EVERY.parts]
    made = answer_classes(DRAWN, ROWS, randomness=SystemRandomness(), policy=ClientPolicy())
    assert made.reports == 1
    made = answer_classes(LOCAL, ROWS, randomness=SystemRandomness(), policy=ClientPolicy())
    assert made.reports == len(ROWS)
    alone = survey_of(Privacy.LOCAL, 4, ClassDesign.OWN, unit=Unit(UnitKind.CLIENT, 1))
    made = answer_classes(alone, ROWS, randomness=SystemRandomness(), policy=ClientPolicy())
    assert made.reports == 1


def test_parts_are_drawn_by_their_public_shares() -> None:
    dice = Dice(SimulatedRandomness(np.random.SeedSequence(3)))
    draw, draws = PartDraw(LOCAL), 4000
    seen = Counter(draw(dice) for _ in range(draws))
    shares = [float(part.client_fraction or 0) for part in LOCAL.parts]
    expected = [draws * share for share in shares]
    found = chisquare([seen[number] for number in range(len(shares))], expected)
    assert found.pvalue > 1e-6
    assert chisquare([seen[n] for n in range(len(shares))], expected[::-1]).pvalue < 1e-6


def test_all_parts_together_are_charged_once_and_before_anything_leaves(tmp_path: Path) -> None:
    account = account_in(tmp_path, Fraction(1))
    answer_classes(
        EVERY, ROWS, randomness=SystemRandomness(), policy=ClientPolicy(), account=account
    )
    charges = [e.content for e in account.ledger.entries() if isinstance(e.content, Charge)]
    (charge,) = charges
    assert charge.epsilon == sum(part.survey.epsilon or 0 for part in EVERY.parts) == 1
    assert charge.survey == class_fingerprint(EVERY).hex()
    with pytest.raises(SurveyRefused):
        answer_classes(
            DRAWN, ROWS, randomness=SystemRandomness(), policy=ClientPolicy(), account=account
        )
    assert len(account.ledger.entries()) == 2


def test_a_policy_is_held_against_all_parts_together() -> None:
    two = survey_of(Privacy.DISTRIBUTED, 2, ClassDesign.EVERY)
    assert max(part.survey.epsilon or 0 for part in two.parts) < 1
    with pytest.raises(SurveyRefused, match="ask for epsilon 2 together"):
        check_class_policy(ClientPolicy(), two)
    exact = survey_of(Privacy.SECURE, None)
    with pytest.raises(SurveyRefused, match="exact sums"):
        check_class_policy(ClientPolicy(), exact)
    check_class_policy(ClientPolicy(exact_sums=True), exact)
    loose = survey_of(Privacy.SECURE, None, smallest_cell=5)
    with pytest.raises(SurveyRefused, match="below 10"):
        check_class_policy(ClientPolicy(exact_sums=True), loose)
    known = survey_of(Privacy.DISTRIBUTED, 1, model_digest="a" * 64)
    check_class_policy(ClientPolicy(model_digests=frozenset({"a" * 64})), known)
    with pytest.raises(SurveyRefused, match="models it knows"):
        check_class_policy(ClientPolicy(model_digests=frozenset({"b" * 64})), known)


def test_rows_of_other_classes_are_refused() -> None:
    other = drawn_rows(50, (1.0, 1.0, 1.0, 1.0))
    with pytest.raises(LabelInvalid, match="asks about 3 classes"):
        answer_classes(EVERY, other, randomness=SystemRandomness(), policy=ClientPolicy())


def test_a_survey_that_a_stranger_changed_is_refused() -> None:
    content = class_survey_json(EVERY)
    assert class_survey_from_json(content) == EVERY
    parts = content["parts"]
    changes = (
        {"parts": parts[:-1]},
        {"parts": [parts[1], parts[0], *parts[2:]]},
        {"parts": [*parts[:-1], class_survey_json(DRAWN)["parts"][-1]]},
        {"classes": ["0", "1", "3"]},
        {"design": "own"},
        {"model_digest": "c" * 64},
        {"smallest_cell": 10},
    )
    for change in changes:
        with pytest.raises(FileInvalid):
            class_survey_from_json({**content, **change})


@pytest.mark.parametrize("parts", ["all", [], [{}] * 3, [{}] * 1004])
def test_a_survey_of_classes_lists_its_parts(parts: object) -> None:
    """Three classes have four parts at least, a thousand have 1,003 at most."""
    with pytest.raises(FileInvalid, match='"parts" lists the surveys of all classes'):
        class_survey_from_json({**class_survey_json(EVERY), "parts": parts})


def test_what_is_the_same_in_other_words_has_no_second_fingerprint() -> None:
    content = class_survey_json(DRAWN)
    first, *others = content["parts"]
    share = Fraction(first["client_fraction"])
    assert share < 1
    longer = f"{2 * share.numerator}/{2 * share.denominator}"
    same = {**content, "parts": [{**first, "client_fraction": longer}, *others]}
    with pytest.raises(FileInvalid, match="says everything in one way"):
        class_survey_from_json(same)


def test_very_many_classes_have_no_confusion_matrix_and_their_survey_reads_back() -> None:
    names = tuple(f"c{number}" for number in range(256))
    survey = design_classes(SurveyRequest(clients=20, examples=6000), names)
    assert PartKind.CONFUSION not in {part.kind for part in survey.parts}
    assert class_survey_from_json(class_survey_json(survey)) == survey


def test_a_part_that_no_row_draws_is_not_answered() -> None:
    """Two rows draw two of five parts at most."""
    made = answer_classes(
        LOCAL, ROWS.rows(np.arange(2)), randomness=SystemRandomness(), policy=ClientPolicy()
    )
    assert len(LOCAL.parts) > 2
    assert made.reports == 2
    assert len({message.fingerprint for message in made.messages}) <= 2


def test_a_tally_counts_each_report_once_and_is_released_whole(tmp_path: Path) -> None:
    survey = survey_of(Privacy.DISTRIBUTED, 1, ClassDesign.EVERY, clients=2, minimum_reports=2)
    kept, path = KeptClassTally.empty(survey), tmp_path / "study.tally"
    builder = ClassTallyBuilder(survey, kept.tallies)
    answers = [
        answer_classes(survey, ROWS, randomness=SystemRandomness(), policy=OPEN_POLICY)
        for _ in range(2)
    ]
    for message in answers[0].messages:
        builder.add(message)
    with pytest.raises(ReportDuplicate):
        builder.add(answers[0].messages[0])
    kept = kept.holding(builder.tallies())
    assert kept.reports == 1
    with pytest.raises(TooFewReports):
        kept.released()
    for message in answers[1].messages:
        builder.add(message)
    kept.holding(builder.tallies()).released().save(path)
    again = KeptClassTally.load(path)
    assert again.reports == 2
    assert [t.counters.tolist() for t in again.tallies] == [
        t.counters.tolist() for t in builder.tallies()
    ]
    third = answer_classes(survey, ROWS, randomness=SystemRandomness(), policy=OPEN_POLICY)
    for message in third.messages:
        builder.add(message)
    with pytest.raises(TallyClosed):
        again.holding(builder.tallies())
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FileInvalid, match="checksum"):
        KeptClassTally.load(path)
