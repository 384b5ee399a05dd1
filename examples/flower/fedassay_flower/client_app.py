"""What a SuperNode runs."""

from fedassay.engines.flower.client_app import app

__all__ = ["app"]
