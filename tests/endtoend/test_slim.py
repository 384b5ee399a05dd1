"""A client with numpy and cryptography alone answers surveys; the rest names its extra."""

import re
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from fedassay import Survey, Tally
from fedassay.engines.report_files import read_messages
from fedassay.mechanisms import Privacy
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from tests.slim import run_slim
from tests.surveys import local_survey
from tests.tables import ROOT

ANSWER = """
from pathlib import Path
import sys
import fedassay
from fedassay import client
from fedassay.ledger import Ledger, LedgerAccount, Part
from fedassay.survey_json import load_survey

survey, ledger, report = map(Path, sys.argv[1:])
answer = client.answer(
    load_survey(survey),
    fedassay.Examples([0, 0, 1], [0.2, 0.4, 0.9]),
    randomness=fedassay.SystemRandomness(),
    policy=fedassay.ClientPolicy(smallest_cohort=1, exact_sums=True, smallest_cell=0),
    account=LedgerAccount(Ledger.create(ledger), Part("ward-3")),
)
report.write_bytes(answer.to_bytes())
"""


def surveys() -> dict[str, Survey]:
    distributed = SurveyRequest(
        privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), minimum_reports=10, examples=1000
    )
    return {
        "secure": design_survey(SurveyRequest(minimum_reports=1)).survey,
        "distributed": design_survey(distributed).survey,
        "local unary": local_survey(Fraction(1)),
        "local response": local_survey(Fraction(1), kinds="grr"),
    }


@pytest.mark.parametrize("kind", surveys())
def test_a_slim_client_answers_a_survey_file(kind: str, tmp_path: Path) -> None:
    survey = surveys()[kind]
    survey.save(tmp_path / "survey.json")
    done = run_slim(
        ANSWER, tmp_path / "survey.json", tmp_path / "ledger.db", tmp_path / "report.fa"
    )
    assert (done.stdout, done.stderr) == ("", "")
    tally = Tally.of(survey, read_messages(tmp_path / "report.fa", survey))
    assert tally.clients(survey) == (3 if survey.is_local else 1)


def test_every_layer_of_a_client_imports_slim() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (client,) = [
        contract["source_modules"]
        for contract in contracts["contracts"]
        if contract["name"] == "A client needs only numpy and cryptography"
    ]
    assert len(client) > 10
    done = run_slim(
        """
        import importlib, pkgutil
        for name in sys.argv[1:]:
            module = importlib.import_module(name)
            for inside in pkgutil.walk_packages(getattr(module, "__path__", ()), name + "."):
                importlib.import_module(inside.name)
        """,
        *client,
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (
            "h = fedassay.ScoreHistogram.from_scores([0, 1] * 50, [0.2, 0.8] * 50)\n"
            "fedassay.calibration.fit(h)",
            "scipy is needed for calibration; install it with: pip install 'fedassay[all]'",
        ),
        (
            "from fedassay.metrics import displays; displays.axes_or_new(None)",
            "matplotlib is needed for drawing; install it with: pip install 'fedassay[all]'",
        ),
        (
            "from pathlib import Path; from fedassay.tables.sources import row_count\n"
            "row_count(Path('rows.parquet'))",
            "pyarrow is needed for tables; install it with: pip install 'fedassay[all]'",
        ),
        (
            "import fedassay.engines.flower.client_app",
            "flwr is needed for a federation over Flower; install it with: "
            "pip install 'fedassay[flower]'",
        ),
    ],
)
def test_what_needs_an_extra_says_so_in_one_line(code: str, line: str) -> None:
    done = run_slim("import fedassay\n" + code)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"fedassay.errors.MissingExtra: {line}"


def test_the_command_line_of_a_slim_installation_is_one_line_and_exit_2() -> None:
    done = run_slim("from fedassay.cli import main; main()", "demo")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert re.fullmatch(
        r"MissingExtra: (click|typer|rich) is needed for the command line; "
        r"install it with: pip install 'fedassay\[all\]'",
        line,
    )


def test_a_survey_is_planned_and_an_interval_drawn_without_scipy() -> None:
    done = run_slim(
        "import fedassay\n"
        'asked = {"privacy": "distributed", "epsilon": 1, "clients": 5000, "steps": 2}\n'
        "print(fedassay.new_survey(**asked).epsilon, fedassay.Estimate(0.5).interval())"
    )
    assert done.stderr == ""
    assert done.stdout.startswith("1/10 ")
