"""All that is taken from Flower, in one place; without it, one line names the extra."""

from fedassay.extras import needed_for

with needed_for("a federation over Flower"):
    from flwr.app import ConfigRecord, Context, Message, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp

__all__ = ["ClientApp", "ConfigRecord", "Context", "Grid", "Message", "RecordDict", "ServerApp"]
