"""The app to copy: both sides are in `fedassay.engines.flower`."""
