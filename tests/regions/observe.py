"""What a call of a module leaves behind, and what two such records differ in."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

PLAIN = (bool, int, float, str, type(None))


@dataclasses.dataclass
class Snapshot:
    """A tensor as it was: its numbers, its layout and what autograd knows of it."""

    value: Tensor
    layout: tuple[int, ...]
    flags: dict[str, Any]


def snapshot(x: Tensor) -> Snapshot:
    """The tensor with strides of axes that have several entries, and its autograd flags."""
    flags = {"shape": tuple(x.shape), "dtype": x.dtype, "requires_grad": x.requires_grad,
             "class": type(x), "inference": x.is_inference()}  # fmt: skip
    layout = tuple(s if n > 1 else 0 for n, s in zip(x.shape, x.stride(), strict=True))
    with torch.inference_mode(False), torch.no_grad():
        return Snapshot(x.detach().clone(), layout if x.numel() else (), flags)


def describe(value: Any, inputs: Mapping[str, Tensor] | None = None) -> Any:
    """A value with its tensors as snapshots, each with the input whose memory it has."""
    if isinstance(value, Tensor):
        return snapshot(value), _origin(value, inputs or {})
    if isinstance(value, (*PLAIN, torch.Size, torch.dtype)):
        return value
    if isinstance(value, Mapping):
        return type(value), {k: describe(v, inputs) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [describe(v, inputs) for v in value]
    if dataclasses.is_dataclass(value):
        return type(value).__name__, {
            f.name: describe(getattr(value, f.name), inputs) for f in dataclasses.fields(value)
        }
    return type(value).__name__


def _origin(x: Tensor, inputs: Mapping[str, Tensor]) -> str:
    for name, given in inputs.items():
        if x is given:
            return name
        if x.numel() and x.untyped_storage().data_ptr() == given.untyped_storage().data_ptr():
            return f"a view of {name}"
    return "new"


def state(module: nn.Module) -> dict[str, Any]:
    """Parameters, gradients, buffers and plain attributes of a module and of all below it."""
    kept: dict[str, Any] = {}
    for path, part in module.named_modules():
        for name, value in part.__dict__.items():
            if isinstance(value, (*PLAIN, Tensor, list, tuple)) and not name.startswith("_"):
                kept[f"{path}.{name}"] = describe(value)
    for name, p in module.named_parameters():
        kept[f"gradient of {name}"] = None if p.grad is None else p.grad.detach().clone()
        kept[name] = describe(p)
    for name, b in module.named_buffers():
        kept[name] = describe(b)
    return kept


def surroundings() -> dict[str, Any]:
    """Modes and random numbers that a call must leave as eager leaves them."""
    return {
        "random state": torch.get_rng_state(),
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
    }


def tensors(value: Any) -> list[Tensor]:
    """The tensors in a nested value, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in tensors(v)]
    if isinstance(value, list | tuple):
        return [t for v in value for t in tensors(v)]
    if dataclasses.is_dataclass(value):
        return [t for f in dataclasses.fields(value) for t in tensors(getattr(value, f.name))]
    return []


def weighted(value: Any) -> Tensor | None:
    """A number in which every entry that learns has a weight of its own."""
    total = None
    for t in tensors(value):
        if t.requires_grad and t.is_floating_point():
            weight = torch.arange(t.numel(), dtype=t.dtype).cos().view(t.shape)
            term = (t * weight).sum().double()
            total = term if total is None else total + term
    return total


def differences(
    a: Any, b: Any, near: Callable[[Tensor, Tensor], bool], path: str = ""
) -> list[str]:
    """Where two descriptions differ, in words."""
    if isinstance(a, Snapshot) and isinstance(b, Snapshot):
        wrong = [
            f"{path}: {k} {a.flags[k]} is {b.flags[k]}" for k in a.flags if a.flags[k] != b.flags[k]
        ]
        if wrong:
            return wrong
        if a.layout != b.layout:
            wrong = [f"{path}: strides {a.layout} are {b.layout}"]
        return wrong + differences(a.value, b.value, near, path)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return [f"{path}: {a.dtype} {tuple(a.shape)} is {b.dtype} {tuple(b.shape)}"]
        return [] if near(a, b) else [f"{path}: {a.flatten()[:6]} is {b.flatten()[:6]}"]
    if type(a) is not type(b):
        return [f"{path}: {a!r:.80} is {b!r:.80}"]
    if isinstance(a, dict):
        missing = [f"{path}: {k!r} only on one side" for k in a.keys() ^ b.keys()]
        shared = [k for k in a if k in b]
        return missing + [d for k in shared for d in differences(a[k], b[k], near, f"{path}.{k}")]
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            return [f"{path}: {len(a)} entries are {len(b)}"]
        pairs = enumerate(zip(a, b, strict=True))
        return [d for i, (x, y) in pairs for d in differences(x, y, near, f"{path}[{i}]")]
    return [] if a == b else [f"{path}: {a!r:.80} is {b!r:.80}"]


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Equal numbers; NaN equals NaN."""
    return torch.equal(torch.nan_to_num(a, 7e7), torch.nan_to_num(b, 7e7)) if (
        a.is_floating_point()) else torch.equal(a, b)  # fmt: skip


def within(tolerance: float) -> Callable[[Tensor, Tensor], bool]:
    """Whether numbers agree to a tolerance, relative above 1; those of half precision to 3 %."""

    def near(a: Tensor, b: Tensor) -> bool:
        if not a.is_floating_point():
            return torch.equal(a, b)
        limit = 0.03 if a.dtype in (torch.bfloat16, torch.float16) else tolerance
        return torch.allclose(a, b, rtol=limit, atol=limit, equal_nan=True)

    return near
