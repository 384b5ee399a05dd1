"""What classes cost by each way to ask."""

from fractions import Fraction

from fedassay.classes.class_design import ClassDesign
from fedassay.classes.design import design_classes
from fedassay.classes.design_costs import design_costs
from fedassay.mechanisms import Privacy
from fedassay.planning.request import SurveyRequest

NAMES = tuple("abcdef")


def test_the_first_design_is_the_one_that_a_survey_takes() -> None:
    for privacy, epsilon in ((Privacy.LOCAL, 5), (Privacy.DISTRIBUTED, 1), (Privacy.SITE, 1)):
        request = SurveyRequest(
            privacy=privacy, epsilon=Fraction(epsilon), clients=20_000, examples=20_000
        )
        costs = design_costs(request, NAMES)
        assert costs[0].design is design_classes(request, NAMES).design
        assert [each.error for each in costs] == sorted(each.error for each in costs)
        assert len(costs) == (2 if privacy is Privacy.SITE else 3)


def test_exact_sums_share_nothing() -> None:
    (only,) = design_costs(SurveyRequest(clients=100), NAMES)
    assert (only.design, only.draws_one_part) == (ClassDesign.EVERY, False)


def test_few_clients_are_not_asked_to_draw_one_part_each() -> None:
    for clients, designs in ((2, {"every", "own"}), (20_000, {"every", "own", "drawn"})):
        request = SurveyRequest(
            privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=clients, examples=20_000
        )
        assert {each.design.value for each in design_costs(request, NAMES)} == designs
