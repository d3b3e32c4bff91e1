"""Terms of C++ for the nodes of a captured graph, each of the kind that its type says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from ingot.fields.jit.nodes import name_of
from ingot.fields.jit.operations import OPERATIONS, Kind, Term, literal

__all__ = ["applied", "cast", "kind_of"]

RAW = ("pow.Tensor_Scalar",)
"""Operations whose plain numbers are part of the code."""


def kind_of(node: Node, real: torch.dtype) -> Kind:
    """What a block of a node's values is; a size is a number."""
    value = node.meta["val"]
    if not isinstance(value, Tensor):
        return "V"
    if value.dtype == torch.bool:
        return "M"
    if value.dtype not in (real, real.to_complex()):
        raise KeyError(str(value.dtype))
    return "C" if value.dtype.is_complex else "V"


def applied(node: Node, term: Callable[[Node], Term], real: torch.dtype) -> Term:
    """The term of a node from those of its arguments; KeyError where there is none."""
    name = name_of(node)
    raw = name in RAW

    def argument(value: Any) -> Any:
        if isinstance(value, Node):
            return term(value)
        printed = isinstance(value, bool | int | float | complex) and not raw
        return literal(value) if printed else value

    found = OPERATIONS[name](*map(argument, node.args), **node.kwargs)
    return cast(found, kind_of(node, real))


def cast(term: Term, kind: Kind) -> Term:
    """A term as another kind; KeyError where that would lose a part of it."""
    if term.kind == kind:
        return term
    if term.kind == "C":
        raise KeyError("real part")
    if kind == "M":
        return Term(f"as_truth({term.text})", "M")
    real = Term(f"as_real({term.text})", "V")
    return real if kind == "V" else Term(f"complex({real.text})", "C")
