"""A graph of a block -> code by Inductor that is recorded on a GPU, forward and backward."""

from collections.abc import Callable
from typing import Any

from torch import fx

from ingot.graphs import torch_private
from ingot.graphs.cuda_graphs import Run, gpu
from ingot.graphs.recorded import Dispatcher

__all__ = ["compile_recorded"]


def compile_recorded(graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """Compile by Inductor, backward too; code that runs on one GPU alone is recorded."""
    with torch_private.wrap_inductor_code(_wrap_code):
        return torch_private.compile_by_inductor(graph, inputs)


def _wrap_code(code: torch_private.InductorCode) -> Run:
    places = [device.partition(":") for device in code.devices]
    if [kind for kind, _, _ in places] != ["cuda"]:
        return code.run
    return Dispatcher(
        code.run, gpu(int(places[0][2])), static=code.static, writes=code.writes,
        backward=code.is_backward, open_sizes=code.open_sizes,
    )  # fmt: skip
