"""What the tests of regions share."""

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
import torch._inductor.config as inductor
from torch import Tensor, fx
from torch._dynamo.backends.debugging import aot_eager
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode

from ingot.regions import torch_facts
from ingot.regions.unit import UNITS


@pytest.fixture(autouse=True, scope="session")
def no_probes() -> Iterator[None]:
    """Torch asks g++ six times which instructions it can emit; the answer is known."""
    with inductor.patch({"cpp.vec_isa_ok": True, "compile_threads": 1}):
        yield


@pytest.fixture(scope="module")
def uncompiled() -> Iterator[mock.Mock]:
    """Units are traced, functionalised and differentiated, and then run without generated code.

    Gives a count of what torch was asked to compile.
    """

    def made(
        graph: fx.GraphModule, mode: FakeTensorMode, inputs: list[Tensor], *, grad: bool
    ) -> Any:
        with tracing(TracingContext(mode)), torch.set_grad_enabled(grad):
            return aot_eager(graph, inputs)

    spy = mock.Mock(side_effect=made)
    with mock.patch.object(torch_facts, "compiled", spy), mock.patch.dict(UNITS, clear=True):
        yield spy
