"""The program as a whole: real processes."""

from pathlib import Path

from tests.program import Result, check_refused, program, write_csv


def test_the_demo_prints_every_metric_beside_its_exact_value() -> None:
    done = program("demo")
    assert done.returncode == 0
    assert done.stderr == ""
    for word in ("16 airlines", "roc_auc", "average_precision", "brier", "log_loss", "mcc@0.3"):
        assert word in done.stdout
    page = Path(done.stdout.splitlines()[-1])
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    page.unlink()
    page.parent.rmdir()


def test_a_real_process_refuses_in_one_line(tmp_path: Path) -> None:
    done = program("simulate", write_csv(tmp_path / "bad.csv", "0.2,0\n-0.7312345,1"))
    check_refused(Result(done.returncode, done.stdout, done.stderr), "ScoreOutOfRange")
