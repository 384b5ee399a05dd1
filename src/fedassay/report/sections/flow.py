"""Flow: who was asked, who answered, and which rows counted, where that is known."""

from fedassay.report.markup import Content, Markup, element
from fedassay.report.material import Material
from fedassay.report.wording import pairs, section
from fedassay.simulation.result import SimulatedAssessment


def flow(material: Material) -> Markup:
    """From those invited to the rows that the figures are read from."""
    assessment, invited = material.assessment, material.details.invited
    steps: dict[str, Content] = {
        "Clients invited": "not told" if invited is None else f"{invited:,}",
        "Reports counted": f"{assessment.reports:,}",
    }
    if invited is not None and invited >= assessment.reports:
        steps["Dropped out, or declined"] = f"{invited - assessment.reports:,}"
    levels = assessment.tally.reports
    if len(set(levels)) > 1:
        steps["Reports by level"] = ", ".join(f"{each:,}" for each in levels)
    steps["Fewest reports that the survey asks for"] = f"{assessment.survey.minimum_reports:,}"
    if isinstance(assessment, SimulatedAssessment):
        steps["Rows at hand (simulated)"] = f"{assessment.rows:,}"
        left_out = assessment.rows - assessment.counted
        steps["Rows left out"] = f"{left_out:,}" + (
            f": at most {assessment.survey.unit.max_examples:,} of a client count" * bool(left_out)
        )
    steps["Rows counted"] = material.rows
    return section(
        "flow",
        "Flow",
        pairs(steps),
        element(
            "p",
            "Rows that a client left out before it answered (bad scores, missing labels) are known "
            "to that client alone.",
            class_="note",
        ),
    )
