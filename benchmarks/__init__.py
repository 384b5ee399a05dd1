"""Benchmarks against peers: `python -m benchmarks` measures and writes `benchmarks/README.md`."""
