"""The history page as text: where its bands are, and what it says of looks without a figure."""

import re

from fedassay.estimate import Estimate, NotEnoughData
from fedassay.report.history_page import history_page, time_figure
from fedassay.tracking.alarms import Alarm, Watch
from fedassay.tracking.history import History
from tests.pages import assessment

LOOKS = {f"2026-{at:02}": Estimate(0.8 - 0.01 * at, sampling_sd=0.005) for at in range(1, 7)}


def test_the_band_goes_from_the_change_to_its_alarm() -> None:
    alarm = Alarm("roc_auc", "2026-05", "2026-03", 0.79, 0.76)
    drawn = time_figure("roc_auc", LOOKS, [alarm])
    (path,) = re.findall(r'<path d="M([^"]*)" class="band"', drawn)
    ends = sorted({float(place.split()[0]) for place in path.rstrip("Z").split("L")})
    # The frame is 440 wide with 60 and 14 beside it, for looks from -0.6 to 5.6.
    step = (440 - 60 - 14) / 6.2
    assert abs(ends[0] - (60 + (2 - 0.5 + 0.6) * step)) < 0.1
    assert abs(ends[-1] - (60 + (4 + 0.5 + 0.6) * step)) < 0.1


def test_a_look_without_a_figure_is_left_out_of_the_picture() -> None:
    some = {**LOOKS, "2026-07": NotEnoughData(reason="noise")}
    assert time_figure("roc_auc", some, []).count("<circle") == 6
    assert time_figure("roc_auc", {"2026-07": NotEnoughData()}, []).count("<circle") == 0


def test_one_look_makes_a_page_that_says_to_wait() -> None:
    page = history_page(History({"2026-10": assessment("secure")}), watch=Watch(("roc_auc",)))
    assert "one look says nothing about change" in page
    assert "No alarm was raised." in page
