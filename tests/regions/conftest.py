"""What the tests of regions share."""

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
import torch._inductor.config as inductor
from torch import Tensor, fx
from torch._dynamo.backends.debugging import aot_eager

from ingot.graphs import torch_private
from ingot.regions.unit import UNITS


@pytest.fixture(autouse=True, scope="module")
def no_probes() -> Iterator[None]:
    """Torch asks g++ six times which instructions it can emit; the answer is known."""
    with inductor.patch({"cpp.vec_isa_ok": True, "compile_threads": 1}):
        yield


@pytest.fixture(scope="module")
def uncompiled() -> Iterator[mock.Mock]:
    """Units are traced, functionalised and differentiated, and then run without generated code.

    Gives a count of what torch was asked to compile.
    """

    def made(graph: fx.GraphModule, mode: Any, inputs: list[Tensor], *, grad: bool) -> Any:
        with torch_private.tracing_context(mode), torch.set_grad_enabled(grad):
            return aot_eager(graph, inputs)

    spy = mock.Mock(side_effect=made)
    with mock.patch.object(torch_private, "compile_now", spy), mock.patch.dict(UNITS, clear=True):
        yield spy
