"""The page in a real browser: it computes what the library does, and keeps to itself."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fedassay
from fedassay import metrics
from fedassay.metrics.named import AT_THRESHOLD
from fedassay.report.material import ReportDetails
from fedassay.report.page import write_report
from fedassay.report.sections.threshold import FIGURES
from tests.browser import Browser, find_axe, start_browser
from tests.pages import PRIVACY, assessment
from tests.program import Run

HOSTILE = {
    "script": "<script>document.title='taken'</script><img src=x onerror=alert(1)>",
    "quotes": "\"'`</title></style></script>&lt;",
    "right to left": "\u202e\u05d0\u05d1 left",
    "long": "x" * 10_000,
}
READ = """(() => {
  const shown = {};
  for (const row of document.querySelectorAll("[data-figure]")) {
    const cells = row.cells ? [row.cells[1], row.cells[2]] : row.children;
    shown[row.dataset.figure] = [cells[0].textContent, cells[1].textContent];
  }
  return shown;
})()"""
COMPUTED = """(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("slider");
  const at = fedassayMetrics.confusionAt(data, Number(slider.value));
  const names = Object.entries(fedassayMetrics.figures);
  return Object.fromEntries(names.map(([name, figure]) => [name, figure(at)]));
})()"""
MOVE = """((value) => {
  const slider = document.getElementById("slider");
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
  return document.getElementById("number").value;
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with start_browser() as started:
        yield started


@pytest.fixture(scope="module", params=PRIVACY)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each privacy model."""
    path = tmp_path_factory.mktemp("pages") / f"{request.param}.html"
    write_report(assessment(request.param), path)
    return path


def table_of(page: Path) -> dict[str, list[float]]:
    (text,) = re.findall(
        r'<script id="data" type="application/json">(.*?)</script>', page.read_text()
    )
    content: dict[str, list[float]] = json.loads(text)
    return content


def without_script(browser: Browser, page: Path) -> Browser:
    """The page as one sees it whose browser runs no scripts."""
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page)
    browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    return browser


def test_the_slider_gives_the_librarys_values_at_fifty_thresholds(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    histogram = assessment(page.stem).histogram()
    offered = table_of(page)["thresholds"]
    for place in np.linspace(0, len(offered) - 1, 50).round().astype(int):
        threshold = offered[place]
        assert float(browser.run(f"{MOVE}({place})")) == pytest.approx(threshold, rel=1e-5)
        at = browser.run('[...document.querySelectorAll(".at")].map((each) => each.textContent)')
        assert [float(each) for each in at] == pytest.approx([threshold] * 2, rel=1e-5)
        counts = metrics.confusion_counts(histogram, threshold)
        computed, shown = browser.run(COMPUTED), browser.run(READ)
        for name in (*FIGURES, *counts):
            expected = counts[name] if name in counts else AT_THRESHOLD[name](histogram, threshold)
            found = computed[name]
            assert (found["value"] is not None) == expected.is_available
            if not expected.is_available:
                assert shown[name][0] == "–"
                continue
            near = 1e-9 * max(1.0, abs(expected.value))
            assert found["value"] == pytest.approx(expected.value, abs=near, rel=0.0)
            for end, value in zip(("low", "high"), expected.interval(), strict=True):
                assert found[end] == pytest.approx(value, abs=1e-9 * max(1.0, abs(value)), rel=0.0)
            written = float(shown[name][0].replace(",", ""))
            assert written == pytest.approx(expected.value, abs=0.51 if name in counts else 0.051)


def test_the_script_writes_what_the_page_was_written_with(browser: Browser, page: Path) -> None:
    written = without_script(browser, page).run(READ)
    assert len(written) == len(FIGURES) + 4
    assert browser.open(page).run(READ) == written


def test_nothing_is_logged_and_nothing_leaves_the_page(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run(f"{MOVE}(7)")
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def test_what_the_policy_forbids_would_be_logged(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_report(assessment("secure"), path)
    path.write_text(
        path.read_text().replace("</main>", "<img src='https://example.com/x.png'></main>")
    )
    browser.open(path)
    assert any("Content Security Policy" in each for each in browser.complaints())


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_as_text(browser: Browser, tmp_path: Path, name: str) -> None:
    text, path = HOSTILE[name], tmp_path / "page.html"
    details = ReportDetails(title=text, model=text, outcome=text, population=text, period=text)
    write_report(assessment("secure"), path, details=details)
    browser.look(width=360)
    browser.open(path)
    assert browser.run("document.querySelector('h1').textContent") == text
    assert browser.run("document.title") == text[:200].strip()
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.documentElement.scrollWidth") == 360
    assert browser.complaints() == []
    browser.look()


def test_the_operating_point_moves_on_every_curve(browser: Browser, page: Path) -> None:
    browser.open(page)
    read = """[...document.querySelectorAll("circle.point")].map((point) =>
      [point.closest("svg").id, point.getAttribute("cx"), point.getAttribute("cy")])"""
    cuts = '[...document.querySelectorAll("line.cut")].map((line) => line.getAttribute("x1"))'
    before, cut_before = browser.run(read), browser.run(cuts)
    offered = table_of(page)["thresholds"]
    browser.run(f"{MOVE}({offered.index(0.4)})")
    after, cut_after = browser.run(read), browser.run(cuts)
    assert [each[0] for each in before] == ["roc", "pr", "decision"]
    for old, new in zip(before, after, strict=True):
        assert old[1:] != new[1:]
    assert all(old != new for old, new in zip(cut_before, cut_after, strict=True))
    histogram = assessment(page.stem).histogram()
    recall = metrics.recall(histogram, 0.4).value
    # The frame is 322 units high, and ends 12 below the top.
    assert float(after[0][2]) == pytest.approx(12.0 + 322.0 * (1.0 - recall), abs=1e-6)
    figures = (
        (1.0 - metrics.specificity(histogram, 0.4).value, recall),
        (recall, metrics.precision(histogram, 0.4).value),
        (0.4, metrics.net_benefit(histogram, 0.4).value),
    )
    for (name, cx, cy), (x, y) in zip(after, figures, strict=True):
        assert (float(cx), float(cy)) == pytest.approx(place_of(browser, name, x, y), abs=1e-6)
    for name in ("calibration-curve", "distribution"):
        cut = browser.run(f'document.querySelector("#{name} line.cut").getAttribute("x1")')
        assert float(cut) == pytest.approx(place_of(browser, name, 0.4, 0.0)[0], abs=1e-6)


def place_of(browser: Browser, name: str, x: float, y: float) -> tuple[float, float]:
    """Where a figure of these values stands in a picture, by the picture's own frame."""
    frame = browser.run(f'document.getElementById("{name}").dataset.frame')
    x0, x1, y0, y1, left, right, bottom, top = map(float, frame.split())
    inside = min(max(y, y0), y1)
    return (
        left + (x - x0) / (x1 - x0) * (right - left),
        bottom + (inside - y0) / (y1 - y0) * (top - bottom),
    )


def test_the_keyboard_moves_the_slider_and_the_number_takes_the_nearest(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    browser.run('document.getElementById("slider").focus()')
    offered = table_of(page)["thresholds"]
    start = int(browser.run('document.getElementById("slider").value'))
    browser.press("ArrowRight", 39)
    assert int(browser.run('document.getElementById("slider").value')) == start + 1
    assert browser.run('document.getElementById("slider").getAttribute("aria-valuetext")') == (
        browser.run('document.getElementById("number").value')
    )
    type_in = """((text) => {
      const field = document.getElementById("number");
      field.value = text;
      field.dispatchEvent(new Event("change"));
      return field.value;
    })"""
    for text, wanted in (("-1", 0.0), ("2", 1.0), ("0.3007", 0.3007)):
        taken = float(browser.run(f'{type_in}("{text}")'))
        best = min(abs(each - wanted) for each in offered)
        assert abs(taken - wanted) == pytest.approx(best, abs=1e-6)
    before = browser.run('document.getElementById("slider").value')
    assert browser.run(f'{type_in}("nothing")') != ""
    assert browser.run('document.getElementById("slider").value') == before


def test_the_reader_sets_the_range_of_the_decision_curve(browser: Browser, page: Path) -> None:
    browser.open(page)
    set_to = """((from, to) => {
      document.getElementById("range-from").value = from;
      const field = document.getElementById("range-to");
      field.value = to;
      field.dispatchEvent(new Event("change"));
      return document.getElementById("decision").dataset.frame.split(" ").slice(0, 2).map(Number);
    })"""
    assert browser.run(f"{set_to}(0.1, 0.2)") == [0.1, 0.2]
    assert "of" in browser.run('document.getElementById("useful").textContent')
    ticks = '[...document.querySelectorAll("#decision .axes text")].map((each) => each.textContent)'
    assert {"0.1", "0.12", "0.2"} <= set(browser.run(ticks))
    assert browser.run(f"{set_to}(0.5, 0.1)") == [0.1, 0.2]
    assert browser.complaints() == []


def test_the_decision_curves_range_is_drawn_and_told_with_the_librarys_figures(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    histogram = assessment(page.stem).histogram()
    for low, high in ((0.1, 0.2), (0.02, 0.9)):
        browser.run(
            f"""(() => {{
              document.getElementById("range-from").value = {low};
              const field = document.getElementById("range-to");
              field.value = {high};
              field.dispatchEvent(new Event("change"));
            }})()"""
        )
        inside = [each for each in table_of(page)["thresholds"] if low <= each <= high]
        every = max(1, len(inside) // 120)
        shown = [at for i, at in enumerate(inside) if i % every == 0 or i == len(inside) - 1]
        net = {at: metrics.net_benefit(histogram, at) for at in shown}
        over = {at: metrics.net_benefit_over_all(histogram, at) for at in shown}
        known = [at for at in shown if net[at].is_available]
        better = [at for at in known if min(net[at].interval()[0], over[at].interval()[0]) > 0]
        told = browser.run('document.getElementById("useful").textContent')
        assert (f"at {len(better)} of {len(known)} thresholds" in told) == bool(better)
        assert ("nowhere surely better" in told) == (not better)
        everybody = metrics.prevalence(histogram).value
        for name, curve in (
            ("line", [net[at].value for at in known]),
            ("all", [everybody - (1.0 - everybody) * at / (1.0 - at) for at in known]),
            ("nobody", [0.0] * len(known)),
        ):
            assert_drawn(browser, name, list(zip(known, curve, strict=True)))
        ends = [net[at].interval() for at in known]
        around = [
            *zip(known, [high for _, high in ends], strict=True),
            *reversed(list(zip(known, [low for low, _ in ends], strict=True))),
        ]
        assert_drawn(browser, "band", around)


def assert_drawn(browser: Browser, name: str, points: list[tuple[float, float]]) -> None:
    """A curve of the decision curve's picture goes through these points, to a tenth of a unit."""
    path = browser.run(f'document.querySelector("#decision .{name}").getAttribute("d")')
    drawn = [[float(each) for each in point.split()] for point in path.strip("MZ").split("L")]
    expected = [place_of(browser, "decision", x, y) for x, y in points]
    np.testing.assert_allclose(drawn, expected, rtol=0.0, atol=0.051)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_is_wider_than_the_window_and_colours_follow_the_reader(
    browser: Browser, page: Path, width: int, dark: bool
) -> None:
    browser.look(width=width, dark=dark)
    browser.open(page)
    assert browser.run("document.documentElement.scrollWidth") == width
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    browser.look()


def test_it_is_printed_on_a4(browser: Browser, page: Path) -> None:
    browser.open(page)
    printed = browser.pdf()
    boxes = set(re.findall(rb"/MediaBox \[([\d. ]+)\]", printed))
    assert {tuple(round(float(each)) for each in box.split()) for box in boxes} == {
        (0, 0, 595, 842)
    }
    assert 4 <= len(re.findall(rb"/Type /Page\b", printed)) <= 16


def faults(browser: Browser) -> list[str]:
    """The rules of axe-core that the open page breaks."""
    browser.run(f"{find_axe().read_text()};0")
    found: list[str] = browser.run("axe.run().then((all) => all.violations.map(({ id }) => id))")
    return found


def test_axe_finds_no_fault(browser: Browser, page: Path) -> None:
    place = list(PRIVACY).index(page.stem)
    browser.look(width=(1400, 360)[place % 2], dark=place >= 2)
    browser.open(page)
    assert faults(browser) == []
    browser.look()


def test_axe_would_find_a_fault(browser: Browser, tmp_path: Path) -> None:
    write_report(assessment("secure"), tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.run('document.querySelector("label[for=slider]").remove()')
    assert faults(browser) == ["label"]


def test_without_a_script_the_page_is_whole(browser: Browser, page: Path) -> None:
    without_script(browser, page)
    assert browser.run("document.querySelectorAll('svg#roc path').length") >= 2
    assert browser.run("getComputedStyle(document.querySelector('.script')).display") == "none"


def test_the_command_writes_a_page_that_opens(
    browser: Browser, run: Run, assessment_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    done = run("report", assessment_file, "-o", path, "--title", "Late", "--json")
    assert done.code == 0
    assert json.loads(done.out)["bytes"] == path.stat().st_size < 400_000
    assert run("report", assessment_file, "-o", path).code == 2
    browser.open(path)
    assert browser.complaints() == []
    assert browser.run("document.title") == "Late"
    assert (assessment_file.parent / "report.html").exists()


def test_sixteen_thousand_cells_and_thousands_of_thresholds_fit(
    browser: Browser, tmp_path: Path
) -> None:
    labels, scores = [0, 1, 0, 1] * 500, np.random.default_rng(1).random(2000)
    result = fedassay.simulate(labels, scores, smallest_cell=0, seed=0)
    assert result.survey.grid.cells > 16_000
    many = replace(result, thresholds=tuple((np.arange(5000) / 5000).tolist()))
    path = tmp_path / "page.html"
    assert write_report(many, path) < 400_000
    browser.open(path)
    assert browser.complaints() == []
    assert "names 5,000" in browser.run('document.getElementById("nearest").textContent')
