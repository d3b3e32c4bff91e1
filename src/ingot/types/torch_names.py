"""Which torch functions may be called on values, and what each stands for."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ingot.types import algebra
from ingot.types.contraction import einsum
from ingot.types.kinds import R2, SR2, Vec
from ingot.types.refuse import refuse
from ingot.types.spectral import Eigen, eigh3, expm3
from ingot.types.value import Scalar, Value, apply, assemble, exact, on_atoms, where

__all__ = ["call"]


def _stack(values: Any, dim: int = 0) -> Any:
    if all(isinstance(v, Scalar) for v in values) and dim in (0, -1):
        kind = {3: Vec, 6: SR2, 9: R2}.get(len(values))
        if kind is not None:
            return assemble(kind, values)
    rows = [v for v in values if isinstance(v, Vec)]
    if len(rows) == 3 and dim in (0, -2):
        return R2.of(*(x for row in rows for x in row.components))
    raise refuse("stacks values to a shape that no kind has", "build the kind: SR2.of(a, b, ...)")


def _total(x: Value) -> Scalar:
    return algebra.add_up(list(x.components))


def _norm(
    x: Value, p: Any = "fro", dim: None = None, keepdim: bool = False, **rest: None
) -> Scalar:
    if p not in ("fro", 2, None) or dim is not None or keepdim or any(rest.values()):
        raise refuse("uses torch.norm of some axes", "use ingot.types.norm")
    return algebra.norm(x)


def _eigh(a: SR2 | R2) -> Eigen:
    return eigh3(algebra.sym(a) if isinstance(a, R2) else a)


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else algebra.maximum(x, min)
    return x if max is None else algebra.minimum(x, max)


_NAMES: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.exp: algebra.exp, torch.log: algebra.log, torch.log10: algebra.log10,
    torch.sqrt: algebra.sqrt, torch.sin: algebra.sin, torch.cos: algebra.cos,
    torch.tan: algebra.tan, torch.asin: algebra.asin, torch.acos: algebra.acos,
    torch.atan: algebra.atan, torch.sinh: algebra.sinh, torch.cosh: algebra.cosh,
    torch.tanh: algebra.tanh, torch.abs: algebra.abs, torch.sign: algebra.sign,
    torch.pow: algebra.pow, torch.clamp: _clamp, torch.where: where,
    torch.maximum: algebra.maximum, torch.minimum: algebra.minimum,
    torch.square: lambda x: x * x, torch.reciprocal: lambda x: 1.0 / x,
    torch.add: lambda a, b: a + b, torch.sub: lambda a, b: a - b,
    torch.mul: lambda a, b: a * b, torch.div: lambda a, b: a / b, torch.neg: lambda a: -a,
    torch.lt: lambda a, b: apply("lt", a, b), torch.gt: lambda a, b: apply("gt", a, b),
    torch.le: lambda a, b: apply("le", a, b), torch.ge: lambda a, b: apply("ge", a, b),
    torch.eq: lambda a, b: a == b, torch.ne: lambda a, b: a != b,
    torch.matmul: algebra.matmul, torch.det: algebra.det, torch.linalg.det: algebra.det,
    torch.inverse: algebra.inv, torch.linalg.inv: algebra.inv,
    torch.linalg.norm: algebra.norm, torch.norm: _norm, torch.trace: algebra.tr,
    torch.dot: algebra.inner, torch.cross: algebra.cross, torch.linalg.cross: algebra.cross,
    torch.stack: _stack, torch.sum: _total, torch.einsum: einsum,
    torch.linalg.eigh: _eigh, torch.linalg.eigvalsh: lambda a: _eigh(a).eigenvalues,
    torch.matrix_exp: expm3, torch.linalg.matrix_exp: expm3,
}  # fmt: skip

_SVD = "use ingot.types.polar(f), or eigh3(sym(transpose(f) @ f))"
_SOLVE = "use ingot.types.inv(a) @ b"
_EIG = "use ingot.types.eigh3(a) of a symmetric tensor"
_REMEDIES: dict[Callable[..., Any], str] = {
    torch.svd: _SVD, torch.linalg.svd: _SVD, torch.linalg.svdvals: _SVD,
    torch.linalg.eig: _EIG, torch.linalg.eigvals: _EIG,
    torch.linalg.solve: _SOLVE, torch.linalg.lu: _SOLVE, torch.linalg.cholesky: _SOLVE,
    torch.linalg.qr: _SVD, torch.linalg.pinv: "use ingot.types.inv(a)",
    torch.bmm: "use a @ b", torch.mm: "use a @ b", torch.mv: "use a @ b",
}  # fmt: skip


def call(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The counterpart of a torch function, or a refusal that names it and a way out."""
    known = _NAMES.get(func)
    if known is not None and _takes(known, args, kwargs):
        return known(*args, **kwargs)
    if on_atoms(*args) is None and any(isinstance(a, Value) for a in args):
        return func(*(a.data if isinstance(a, Value) else a for a in args), **kwargs)
    for operand in args:
        if isinstance(operand, Tensor):
            exact(operand)
    name = torch.overrides.resolve_name(func) or f"torch.{func.__name__}"
    name = name.replace("torch.functional.", "torch.")
    more = "" if known is None else f" with {', '.join(kwargs) or 'further arguments'}"
    remedy = _REMEDIES.get(func, "use the functions of ingot.types")
    raise refuse(f"uses {name}{more}", f"{remedy}, or declare @model(opaque=True)")


def _takes(known: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(known).bind(*args, **kwargs)
    except TypeError:
        return False
    return True
