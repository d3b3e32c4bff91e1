"""Ingot against its peer on shared input files: `python -m benchmarks.bench`."""
