"""The library of computes, one file per family; importing this declares them all."""

from ingot.fields.computes import basic, boundary, models, parsed, spectral

__all__ = ["basic", "boundary", "models", "parsed", "spectral"]
