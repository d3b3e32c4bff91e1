"""Tree or Python -> Model: names, wiring, order, equation systems.

Here: what blocks of a file mean and refer to. Not here: what a law computes (catalog), lines and
derivatives (program), running (execute, drivers).
"""

from ingot.model.binder import read_name
from ingot.model.factory import (
    ELSEWHERE,
    SECTIONS,
    Factory,
    bind,
    build,
    find_home,
    locate,
    python_factory,
)
from ingot.model.model import DataTensors, Law, Model, find_buffers, lag, spell_parameters, walk
from ingot.model.tensors import Tensors

__all__ = [
    "ELSEWHERE", "SECTIONS", "DataTensors", "Factory", "Law", "Model", "Tensors", "bind", "build",
    "find_buffers", "find_home", "lag", "locate", "python_factory", "read_name",
    "spell_parameters", "walk",
]  # fmt: skip
