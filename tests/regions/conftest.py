"""What the tests of regions share."""

from collections.abc import Iterator
from unittest import mock

import pytest
import torch
import torch._inductor.config as inductor
from torch._dynamo.backends.debugging import aot_eager

from ingot.regions.units import UNITS


@pytest.fixture(autouse=True, scope="module")
def no_probes() -> Iterator[None]:
    """Torch asks g++ six times which instructions it can emit; the answer is known.

    It also flushes caches to time every set of guards, for a log that nobody reads here.
    """
    timed = mock.patch("torch._dynamo.guards.profile_guard_manager", lambda *_: 0.0, create=True)
    with timed, inductor.patch({"cpp.vec_isa_ok": True, "compile_threads": 1}):
        yield


@pytest.fixture
def counted() -> Iterator[mock.Mock]:
    """A backend that traces, functionalises and differentiates pieces, and counts them."""
    torch.compiler.reset()
    spy = mock.Mock(side_effect=aot_eager)
    yield spy
    for key in [key for key in UNITS if key[0] is spy]:
        del UNITS[key]
