"""The ServerApp: chooses the survey, leads the sites through the stages, writes the result."""

import logging
from functools import partial

from fedassay.assessment import Assessment
from fedassay.engines.flower.from_flower import Context, Grid, ServerApp
from fedassay.engines.flower.progress import say
from fedassay.engines.flower.run import federate
from fedassay.engines.flower.settings import RunSettings
from fedassay.errors import FedassayError
from fedassay.report.page import write_report

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One run: from settings to `assessment.json`."""
    try:
        settings = RunSettings.from_config(context.run_config)
        assessment = federate(grid, settings, keep=partial(_keep, settings))
        assessment.save(settings.output)
    except FedassayError as error:
        say(f"The run failed. {type(error).__name__}: {error}")
        # Flower writes a traceback of what ends a run; the line above says all of it.
        logging.getLogger("flwr").addFilter(_without_traceback)
        raise
    say(f"Wrote {settings.output.resolve()}.")
    _write_page(assessment, settings)


def _keep(settings: RunSettings, first: Assessment) -> None:
    """Write what the first of two steps gathered: whatever comes, it is not lost."""
    first.save(settings.output)
    say(f"Wrote {settings.output.resolve()}: the first of two steps; the second follows.")


def _write_page(assessment: Assessment, settings: RunSettings) -> None:
    """A page about the result, beside it; that there is none is said, and no more."""
    page = settings.output.with_suffix(".html")
    try:
        write_report(assessment, page)
    except FedassayError as error:
        say(f"There is no page about it. {type(error).__name__}: {error}")
        return
    say(f"Wrote {page.resolve()}, a page about it.")


def _without_traceback(record: logging.LogRecord) -> bool:
    """Take the traceback off a record about an error of ours, and let it pass."""
    if record.exc_info and isinstance(record.exc_info[1], FedassayError):
        record.exc_info = None
    return True
