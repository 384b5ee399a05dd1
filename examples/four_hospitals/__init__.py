"""Four hospitals on one machine: `python -m examples.four_hospitals`."""
