"""What a graph takes from torch's defaults: type and device of new tensors, recording gradients."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from ingot.errors import Problem
from ingot.graphs.torch_private import Modes, note_operations, silence_fakes
from ingot.train.call import Call, renew
from ingot.train.signature import Signature

__all__ = ["find_ambient", "find_other_defaults"]

_ASKS = {"dtype": "get_default_dtype", "device": "get_default_device"}


def find_ambient(call: Call) -> dict[str, str]:
    """The defaults that a call depends on: other ones make other operations, types or devices."""
    now = _read_defaults()
    other = {
        "dtype": lambda: _default_dtype(_other(now["dtype"], "float64", "float32")),
        "device": lambda: torch.device(_other(now["device"], "meta", "cpu")),
    }
    asked = {kind for kind, name in _ASKS.items() if name in call.captured.names}
    usual = _run(call, nullcontext())
    depends = {k for k, enter in other.items() if k in asked or _run(call, enter()) != usual}
    found = {kind: now[kind] for kind in now if kind in depends}
    return found | ({"grad": str(call.captured.grad)} if call.captured.asks_grad else {})


def find_other_defaults(signature: Signature) -> Iterator[Problem]:
    """Defaults of a call that are others than those which its graph was traced for."""
    if not signature.ambient:
        return
    now = _read_defaults()
    for kind, traced in signature.ambient.items():
        if now[kind] != traced and kind == "grad":
            told = f"'{signature.name}' asks whether gradients are recorded, which was {traced}"
            fix = f"call it under torch.set_grad_enabled({traced}), or trace it in this mode"
            yield Problem("other-defaults", f"{told} and is {now[kind]} now", None, fix)
        elif now[kind] != traced:
            what = "type" if kind == "dtype" else "device"
            told = f"'{signature.name}' makes tensors of torch's default {what}, which was {traced}"
            call = f"torch.set_default_dtype(torch.{traced})" if kind == "dtype" else (
                f"torch.device('{traced}')"
            )  # fmt: skip
            fix = f"call it under {call}, or name the {kind} of new tensors and trace it again"
            yield Problem("other-defaults", f"{told} and is {now[kind]} now", None, fix)


def _read_defaults() -> dict[str, str]:
    dtype = str(torch.get_default_dtype()).removeprefix("torch.")
    device, grad = torch.get_default_device().type, str(torch.is_grad_enabled())
    return {"dtype": dtype, "device": device, "grad": grad}


def _other(now: str, one: str, another: str) -> str:
    return another if now == one else one


@contextmanager
def _default_dtype(name: str) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, name))
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _run(call: Call, surroundings: AbstractContextManager[Any]) -> Any:
    """What a call does on fake tensors, as far as it runs; what fails is told by the trace."""
    trial = renew(call, [False] * len(call.primals))
    try:
        with silence_fakes(), Modes.now().entered(), torch.no_grad(), trial.open.mode, surroundings:
            return note_operations(lambda: trial.run(trial.primals))
    except Exception as error:
        return type(error), str(error)
