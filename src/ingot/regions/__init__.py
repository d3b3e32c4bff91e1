"""Repeated blocks of any nn.Module: each distinct block is compiled once, whatever their number.

Here: marking and finding blocks, capturing what lies between, compiling, dispatch, packages of it.
Not here: point programs (program has its own regions), joint graphs for training (train).
"""

from pathlib import Path

from torch import nn

from ingot.keywords import check_keywords
from ingot.regions.build import compile
from ingot.regions.compiled import Compiled
from ingot.regions.mark import noinline
from ingot.regions.report import Report

__all__ = ["Compiled", "Report", "compile", "load", "noinline"]


@check_keywords
def load(folder: str | Path, *, cuda_graphs: bool = False) -> nn.Module:
    """The module of a package that `compile(..., mode="aot", output=folder)` wrote."""
    from ingot.regions.aot import load

    return load(folder, cuda_graphs=cuda_graphs)
