"""What the SuperLink runs."""

from fedassay.engines.flower.server_app import app

__all__ = ["app"]
