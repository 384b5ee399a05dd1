"""What every page says of its survey: what was asked, what it promises, and whom one must trust."""

from fedassay.mechanisms import Guarantee
from fedassay.mechanisms.plain_words import plain_words
from fedassay.report.markup import Content, Markup, element
from fedassay.report.wording import VERSION, pairs, section
from fedassay.survey import Survey


def promise_section(
    survey: Survey,
    guarantee: Guarantee,
    *,
    reports: int,
    fingerprint: bytes | None = None,
    **more: Content,
) -> Markup:
    """The survey's facts, its promise, and the same in plain words.

    Of a question with several surveys the fingerprint is that of all.
    """
    facts: dict[str, Content] = {
        "Fingerprint": element("code", (fingerprint or survey.fingerprint).hex()),
        "Privacy model": survey.privacy.value,
        "Epsilon": "none: sums are exact" if guarantee.in_all is None else guarantee.strength,
        "For": str(survey.unit),
        "Reports counted": f"{reports:,}",
        "Fewest reports": f"{survey.minimum_reports:,}",
        "Smallest cell": f"{survey.smallest_cell:,} rows" if survey.smallest_cell else None,
        "Made by": f"fedassay {VERSION}",
        **more,
    }
    return section(
        "promise",
        "What was counted",
        pairs({term: value for term, value in facts.items() if value is not None}),
        element("p", guarantee.sentence()),
        element("ul", *(element("li", each) for each in plain_words(guarantee))),
    )
