"""Four hospitals on one machine, as a newcomer would try it: `make federation`."""

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from examples.four_hospitals.hospitals import Hospital, open_hospitals
from examples.four_hospitals.processes import Federation, leftovers
from fedassay.assessment import Assessment
from fedassay.cli.console import out
from fedassay.cli.estimates import estimates_table
from fedassay.engines.flower.credentials import make_certificates

_KILL_AFTER = "Stage shares:"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """Run the walk; whatever happens, nothing that it started is left."""
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="fedassay-federation-"))
    try:
        with Federation(folder) as federation:
            return walk(federation)
    except KeyboardInterrupt:
        out.print("Stopped.")
        return 130
    finally:
        left = leftovers(folder)
        if left:
            out.print(f"Still running: {left}", style="red")
        shutil.rmtree(folder, ignore_errors=True)


def walk(federation: Federation) -> int:
    """From keys to the report."""
    folder = federation.folder
    out.print("1. Certificates for TLS; folders, ledgers, keys: four hospitals and a clinic.")
    make_certificates(folder / "certificates", ["127.0.0.1", "localhost"])
    hospitals = open_hospitals(folder)
    out.print(f"2. A SuperLink on loopback, and its front for sites at {federation.address}.")
    federation.start_superlink()
    federation.register(*(Path(f"{hospital.key}.pub") for hospital in hospitals))
    out.print("3. Five SuperNodes, each with its own table.")
    for hospital in hospitals:
        federation.start_site(hospital.name, hospital.key, hospital.config)
    federation.wait_for_sites(*(hospital.name for hospital in hospitals))
    *survivors, victim = hospitals
    out.print(f"4. flwr run; {victim.name} will be killed after the shares.")

    def follow(line: str) -> None:
        if line and "INFO" not in line:
            out.print(f"   {line}", markup=False, highlight=False, soft_wrap=True)
        if line.startswith(_KILL_AFTER):
            federation.kill(victim.name)
            out.print(f"   Killed {victim.name} (SIGKILL).", style="bold")

    output = folder / "assessment.json"
    run = federation.run(
        {
            "privacy": "secure",
            "sites": len(hospitals),
            "minimum-reports": 4,
            "roster": str(folder / "roster.json"),
            "quiet-seconds": 12,
            "output": str(output),
        },
        on_line=follow,
    )
    if run.failed or not output.exists():
        out.print("The run failed; its log is above.", style="red")
        return 1
    return report(Assessment.load(output), survivors)


def report(assessment: Assessment, survivors: list[Hospital]) -> int:
    """The assessment, and whether it is the exact sum over the survivors."""
    out.print("5. The assessment:\n")
    out.print(estimates_table(assessment.estimates()))
    exact = sum(hospital.counters(assessment.survey) for hospital in survivors)
    equal = bool((assessment.tally.counters == exact).all())
    names = ", ".join(hospital.name for hospital in survivors)
    out.print(
        f"\nThe federation's sum {'equals' if equal else 'DOES NOT EQUAL'} the exact sum over "
        f"the survivors ({names}).",
        style="bold green" if equal else "bold red",
        soft_wrap=True,
    )
    return 0 if equal else 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Whoever presses twice still gets everything stopped.
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
