"""Wrong calls, and right ones that look wrong: a tensor changed in any way that Python allows."""

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["odd", "plain"]


class Other(Tensor):
    """A subclass that does nothing of its own."""


def _frozen(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


def _spread(x: Tensor) -> Tensor:
    """The same numbers with gaps between them."""
    wide = torch.full((*x.shape, 3), torch.nan, dtype=x.dtype)
    wide[..., 1] = x
    return wide[..., 1]


def _turned(x: Tensor) -> Tensor:
    order = tuple(reversed(range(x.ndim)))
    return x.permute(order).contiguous().permute(order)


def _negative(x: Tensor) -> Tensor:
    """The same numbers, of which a bit says that they are still to be negated."""
    return torch.complex(torch.zeros_like(x), -x).conj().imag


WAYS: tuple[Callable[[Tensor], Any], ...] = (
    # as it should be, lying in any way
    lambda x: x.clone(), _spread, _turned, _negative,
    lambda x: torch.nn.Parameter(x.clone(), requires_grad=False),
    lambda x: x.clone().requires_grad_(), lambda x: x[None][0], lambda x: x.detach(),
    lambda x: x[:1].expand(x.shape) if x.ndim else x, lambda x: torch.full_like(x, torch.nan),
    # another precision, kind or device
    lambda x: x.float(), lambda x: x.half(), lambda x: x.bfloat16(), lambda x: x.to(torch.int64),
    lambda x: x > 0, lambda x: x.to(torch.complex128), lambda x: x.to("meta"),
    lambda x: x.to_sparse(), lambda x: x.float().to_mkldnn() if x.ndim else x.float(),
    lambda x: x[None].to_sparse_csr() if x.ndim == 1 else x.to_sparse(),
    lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8),
    lambda x: torch.nested.nested_tensor([x, x]), lambda x: x.as_subclass(Other),
    lambda x: torch.masked.masked_tensor(x, x > 0), lambda x: torch._efficientzerotensor(x.shape),
    # another shape
    lambda x: x[..., :-1] if x.ndim else x[None], lambda x: x[None], lambda x: x.unsqueeze(-1),
    lambda x: x.reshape(-1), lambda x: x[:0] if x.ndim else x[None][:0],
    lambda x: x.sum(), lambda x: x[0] if x.ndim else x,
    lambda x: torch.cat([x, x]) if x.ndim else x,
    # arrays and numbers
    lambda x: x.numpy(), lambda x: x.numpy().astype(">f8"), lambda x: _frozen(x.numpy().copy()),
    lambda x: np.flip(np.flip(x.numpy()).copy()), lambda x: x.numpy().astype(np.float32),
    lambda x: np.ma.masked_array(x.numpy(), x.numpy() > 0), lambda x: x.numpy().astype(object),
    lambda x: x.numpy().astype(np.longdouble), lambda x: x.tolist(), lambda x: float(x.sum()),
    lambda x: 1, lambda x: True, lambda x: None, lambda x: "1", lambda x: {}, lambda x: [x],
    lambda x: np.datetime64("2020"), lambda x: x.numpy().astype("f8,f8"), lambda x: iter(()),
)  # fmt: skip


def odd(x: Tensor, dice: random.Random) -> Any:
    """A tensor, or what stands in its place, changed in one of these ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of kinds of tensors that it gives up
        return dice.choice(WAYS)(x)


def plain(value: Any) -> Tensor | None:
    """The numbers that a changed tensor holds as an ordinary one, if it has such."""
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        return torch.from_numpy(value.astype("f8")) if value.dtype.kind == "f" else None
    if type(value) in (Tensor, torch.nn.Parameter) and value.layout == torch.strided:
        return None if value.is_nested or value.is_meta else value.detach().clone().resolve_neg()
    return None
