"""A law's program against its function on plain tensors: values, Jacobians, adjoints."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.program import Choices, Program, verify, with_adjoint, with_jacobian
from tests.execute.test_inductor import printing

Plain = Callable[..., Tensor]


def every_executor(program: Program, point: Mapping[str, Tensor], **more: Any) -> list[Any]:
    """The outputs that each executor gives; linear systems are no lines of graphs."""
    given = {v.name: point[v.name] for v in program.inputs}
    fit = [name for name in EXECUTORS if name != "graphs" or not _has_systems(program)]
    return [EXECUTORS[name](program, **more)(given)[0] for name in fit]


def _has_systems(program: Program) -> bool:
    return any(n.op == "linear" for n in program.lines)


LOOPS = Choices(unroll_limit=0)
EXECUTORS: dict[str, Callable[..., Any]] = {
    "interpret": Interpreter,
    "straight lines": Kernel,
    "loops": lambda program, **more: Kernel(program, choices=LOOPS, **more),
    "graphs": lambda program, **more: printing(program, **more),
}


def on_tensors(law: Callable[..., Any], **kinds: Any) -> Callable[..., Tensor]:
    """The untraced law as a function of tensors at one point."""

    def plain(**given: Tensor) -> Tensor:
        values = {
            n: kinds[n](x, sub_batch_ndim=x.ndim - len(kinds[n].base)) for n, x in given.items()
        }
        return law(**values).data

    return plain


def agree(
    program: Program, plain: Plain, point: Mapping[str, Tensor], *, by: Sequence[str] | None = None,
    executors: Sequence[str] = tuple(EXECUTORS), rtol: float = 1e-12,
) -> None:  # fmt: skip
    """Every executor gives what `plain`, a function of one point by names, and torch.func give."""
    names = [v.name for v in program.inputs]
    by = names if by is None else list(by)
    args = [point[n] for n in names]
    places = tuple(names.index(n) for n in by)

    def one(*values: Tensor) -> Tensor:
        return plain(**dict(zip(names, values, strict=True)))

    value = torch.vmap(one)(*args)
    forward = torch.vmap(torch.func.jacfwd(one, argnums=places))(*args)
    reverse = torch.vmap(torch.func.jacrev(one, argnums=places))(*args)
    output = program.outputs[0]
    bar = torch.randn(value.shape, generator=torch.Generator().manual_seed(1), dtype=value.dtype)
    bars = torch.func.vjp(torch.vmap(one), *args)[1](bar)
    slopes = verify(with_jacobian(program, [(output.name, n) for n in by]))
    adjoint = verify(with_adjoint(program, [output.name], by))
    digest = program.digest
    for name in executors:
        found, _ = EXECUTORS[name](slopes)(point)
        torch.testing.assert_close(found[output.name], value, rtol=rtol, atol=rtol, equal_nan=True)
        for n, a, b in zip(by, forward, reverse, strict=True):
            told = found[f"{output.name}:{n}"]
            torch.testing.assert_close(told, _blocked(a, output, n, program), rtol=rtol, atol=rtol)
            torch.testing.assert_close(told, _blocked(b, output, n, program), rtol=rtol, atol=rtol)
        found, _ = EXECUTORS[name](adjoint)({**point, f"a.{output.name}": bar})
        for n in by:
            told = bars[names.index(n)]
            torch.testing.assert_close(found[f"a.{n}"], told, rtol=rtol, atol=rtol)
    assert program.digest == digest


def _blocked(jacobian: Tensor, output: Any, name: str, program: Program) -> Tensor:
    """torch's (axes, base, axes, base) as a block's (axes, axes, base, base)."""
    given = next(v for v in program.inputs if v.name == name)
    a, b = len(output.axes), len(output.kind.base)
    c, d = len(given.axes), len(given.kind.base)
    order = [0, *range(1, 1 + a), *range(1 + a + b, 1 + a + b + c), *range(1 + a, 1 + a + b),
             *range(1 + a + b + c, 1 + a + b + c + d)]  # fmt: skip
    return jacobian.permute(order)
