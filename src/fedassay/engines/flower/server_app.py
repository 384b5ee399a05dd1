"""The ServerApp: chooses the survey, leads the sites through the stages, writes the result."""

from fedassay.engines.flower.federate import federate
from fedassay.engines.flower.from_flower import Context, Grid, ServerApp
from fedassay.engines.flower.progress import say
from fedassay.engines.flower.settings import RunSettings
from fedassay.errors import FedassayError

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One run: from settings to `assessment.json`."""
    try:
        settings = RunSettings.from_config(context.run_config)
        assessment = federate(grid, settings)
        assessment.save(settings.output)
    except FedassayError as error:
        say(f"The run failed. {type(error).__name__}: {error}")
        raise
    say(f"Wrote {settings.output.resolve()}.")
