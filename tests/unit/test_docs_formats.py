"""docs/formats.md says what is so."""

import hashlib
import re

from fedassay.files import canonical, parse_json
from fedassay.survey_json import survey_from_json
from tests.tables import ROOT

PAGE = (ROOT / "docs" / "formats.md").read_text()
FORMAT = re.compile(r'"(fedassay\.[a-z-]+/[0-9]+)"')


def test_the_pages_survey_has_the_fingerprint_that_stands_below_it() -> None:
    (text, fingerprint) = re.findall(
        r"```json\n(.*)\n```\s+Its fingerprint is `([0-9a-f]{64})`", PAGE
    )[0]
    assert hashlib.sha256(text.encode()).hexdigest() == fingerprint
    survey = survey_from_json(parse_json(text.encode(), "page"))
    assert canonical(survey.to_json()).decode() == text
    assert survey.fingerprint.hex() == fingerprint


def test_every_field_of_a_survey_is_on_the_page() -> None:
    text = re.findall(r"```json\n(.*)\n```", PAGE)[0]
    fields = PAGE[PAGE.index("## Fields") : PAGE.index("## Canonical JSON")]
    listed = re.findall(r"^\| `(\w+)` \|", fields, re.MULTILINE)
    assert sorted(listed) == sorted(survey_from_json(parse_json(text.encode(), "page")).to_json())


def test_every_format_in_the_code_is_on_the_page() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    formats = {name for text in sources for name in FORMAT.findall(text)}
    assert len(formats) > 10
    assert {name for name in formats if f"`{name}`" not in PAGE} == set()


def test_every_file_of_vectors_is_on_the_page() -> None:
    files = {path.name for path in (ROOT / "tests" / "vectors").glob("*.json")}
    assert len(files) >= 6
    assert {name for name in files if f"`{name}`" not in PAGE} == set()
