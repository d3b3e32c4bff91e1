"""Operations declared in this file alone run everywhere: a law that uses them is traced,
differentiated in both modes, cleaned, written out or looped over, interpreted, compiled, printed.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import jacrev, vmap

from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.program import (
    Axis,
    Builder,
    Choices,
    Newton,
    Node,
    Operation,
    Program,
    Solve,
    Space,
    Variable,
    operation,
    verify,
    walk_passes,
    with_adjoint,
    with_jacobian,
)  # fmt: skip
from ingot.program import operations as table
from ingot.program.implicit import close_solve, read_items
from ingot.program.operations import Arrays, Bars, Tangent, Unstructured, find_axis
from ingot.types import Scalar, exp, total
from ingot.types.elementwise import ELEMENTWISE, Elementwise
from ingot.types.value import apply, on_atoms
from tests.execute.test_inductor import assert_close, compiled, every_pair, printing
from tests.program.declared import program_of
from tests.program.oracle import evaluate_program

CELLS, POINTS = 5, 3


# one elementwise operation: a row


def declare_softplus() -> None:
    Elementwise(
        name="softplus", arity=1, numpy=lambda a: np.logaddexp(a, 0.0),
        torch="torch.nn.functional.softplus({0}, threshold=100.0)",
        cxx="log(splat(1) + exp({0}))",
        slopes=lambda g, y, a: (
            g.emit("div", 1.0, g.emit("add", 1.0, g.emit("exp", g.emit("neg", a)))),
        ),
        bound=lambda node, below: 0.0, cost=3,
    )  # fmt: skip


def softplus(x: Any) -> Any:
    return apply("softplus", x)


# one structural operation: a class


def declare_running() -> None:
    class Running(Operation):
        """Sums of all entries up to each, or from each on; its attribute is the axis and which."""

        name = "running"
        arity = 1
        reads_across = True

        def build(
            self, b: Builder, args: tuple[Node, ...], *, axis: str, own: Sequence[Axis] = ()
        ) -> Node:
            return self._along(b, args[0], find_axis(args[0], axis) or Axis(axis), False)

        def _along(self, b: Builder, x: Node, axis: Axis, backwards: bool) -> Node:
            if axis not in x.axes:
                counts = np.arange(1.0, b.extent(axis) + 1)
                return b.emit("mul", x, b.table(counts[::-1] if backwards else counts, (axis,)))
            return b.node(self.name, (x,), (axis, backwards), x.axes)

        def rebuild(self, b: Builder, node: Node, args: tuple[Node, ...]) -> Node:
            return self._along(b, args[0], *node.attr)

        def push(
            self, d: Any, node: Node, known: Mapping[int, Any], columns: Sequence[Node]
        ) -> Tangent:
            axis, _ = node.attr
            tangent = known.get(node.args[0].id, {})
            for column, shifts in tangent:
                if shifts and any(a.key == axis.key for a in columns[column].axes):
                    raise Unstructured(axis.name)
            return {k: self._along(d.builder, t, *node.attr) for k, t in tangent.items()}

        def pull(self, d: Any, node: Node, bar: Node) -> Bars:
            axis, backwards = node.attr
            return [(node.args[0], self._along(d.builder, bar, axis, not backwards))]

        def unroll(self, to: Any, node: Node, entry: tuple[int, ...]) -> Node:
            axis, backwards = node.attr
            at = node.axes.index(axis)
            here = entry[at]
            kept = range(here, to.space.extent(axis)) if backwards else range(here + 1)
            places = [(*entry[:at], i, *entry[at + 1 :]) for i in kept]
            return to.builder.add_up(to.at(node.args[0], node.axes, p) for p in places)

        def evaluate(self, on: Arrays, space: Space, node: Node, args: Sequence[Any]) -> Any:
            axis, backwards = node.attr
            turn = ".flip({dim})" if backwards else ""
            way = slice(None, None, -1) if backwards else slice(None)

            def on_numpy(x: np.ndarray, dim: int) -> np.ndarray:
                turned = np.moveaxis(x, dim, 0)[way]
                return np.moveaxis(np.cumsum(turned, axis=0)[way], 0, dim)

            return on.spell(f"{{0}}{turn}.cumsum({{dim}}){turn}", on_numpy, args, axis)

        def write_cxx(self, lines: Any, node: Node, place: Mapping[tuple[str, int], str]) -> str:
            axis, backwards = node.attr
            here = place[axis.key]
            inside = lines.read(node.args[0], {**place, axis.key: "r"})
            last = lines.space.extent(axis) - 1
            span = f"int r = {here}; r <= {last}" if backwards else f"int r = 0; r <= {here}"
            return f"[&] {{ V s{{}}; for ({span}; ++r) s += {inside}; return s; }}()"

        def write_text(self, node: Node, args: Sequence[str]) -> str:
            axis, backwards = node.attr
            return f"running({args[0]} {'from' if backwards else 'to'} {axis})"

        def bound(self, node: Node, below: Sequence[float]) -> float:
            return below[0] if below[0] >= 0.0 else -math.inf


def running(x: Any, axis: str) -> Any:
    if on_atoms(x) is not None:
        return type(x)(tuple(a.emit("running", a, axis=axis) for a in x.data))
    return type(x)(x.data.cumsum(x.data.ndim - len(x.base) - 1), sub_batch_ndim=x.sub)


@pytest.fixture(autouse=True, scope="module")
def operations() -> Iterator[None]:
    """Both, known as long as this file's tests run."""
    declare_softplus()
    declare_running()
    yield
    for known in (ELEMENTWISE, table._KNOWN):
        for name in ("softplus", "running"):
            known.pop(name, None)


# a law that uses them


def law(x: Scalar["cell"], y: Scalar) -> tuple[Scalar["cell"], Scalar]:  # type: ignore  # noqa: F821
    grown = running(softplus(x * y) + y, "cell")
    return softplus(grown * x) - running(y * exp(-x), "cell"), softplus(total(grown * x, "cell"))


PAIRS = [(y, x) for y in ("a", "b") for x in ("x", "y")]


@pytest.fixture(scope="module")
def program(operations: None) -> Program:
    return verify(program_of(law, gives=("a", "b"), shapes={"x": (CELLS,)}))


def inputs() -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(4)
    x = torch.rand(POINTS, CELLS, generator=source, dtype=torch.float64) * 2 - 1
    return {"x": x, "y": torch.tensor([0.7, -0.4, 1.3], dtype=torch.float64)}


def on_tensors(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    a, b = law(Scalar(x, sub_batch_ndim=1), Scalar(y))
    return a.data, b.data


def expected() -> dict[str, Tensor]:
    """Values and slopes by plain torch."""
    given = inputs()
    a, b = vmap(on_tensors)(given["x"], given["y"])
    slopes = vmap(jacrev(on_tensors, argnums=(0, 1)))(given["x"], given["y"])
    found = {"a": a, "b": b}
    for i, name in enumerate("ab"):
        found |= {f"{name}:{x}": slopes[i][j] for j, x in enumerate("xy")}
    return found


def close(found: Mapping[str, Any], wanted: Mapping[str, Tensor]) -> None:
    for name, x in found.items():
        torch.testing.assert_close(
            torch.tensor(x) if isinstance(x, np.ndarray) else x,
            wanted[name],
            rtol=1e-11,
            atol=1e-11,
            msg=lambda m, n=name: f"{n}: {m}",
        )


def bars() -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(5)
    a = torch.rand(POINTS, CELLS, generator=source, dtype=torch.float64)
    return {"a.a": a, "a.b": torch.rand(POINTS, generator=source, dtype=torch.float64)}


def pulled() -> dict[str, Tensor]:
    """The adjoints by the slopes of plain torch."""
    slopes, bar = expected(), bars()
    by_x = (
        torch.einsum("pi,pij->pj", bar["a.a"], slopes["a:x"]) + bar["a.b"][:, None] * slopes["b:x"]
    )
    by_y = (bar["a.a"] * slopes["a:y"]).sum(1) + bar["a.b"] * slopes["b:y"]
    return {"a.x": by_x, "a.y": by_y}


def test_a_law_is_traced_to_lines_of_them(program: Program) -> None:
    assert {"softplus", "running"} <= {n.op for n in program.lines}
    text = str(program)
    assert "softplus(" in text and "running(" in text and " to cell)" in text
    assert program.count() == sum(operation(n.op).cost(program, n) for n in program.lines)


def test_both_modes_are_those_of_plain_torch(program: Program) -> None:
    close(evaluate_program(with_jacobian(program, PAIRS), _numbers(inputs())), expected())
    adjoint = with_adjoint(program, ["a", "b"], ["x", "y"])
    close(evaluate_program(adjoint, _numbers(inputs() | bars())), expected() | pulled())
    assert " from cell)" in str(adjoint)


def _numbers(tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {n: x.numpy() for n, x in tensors.items()}


@pytest.mark.parametrize("limit", [0, 10**9], ids=["loops", "lines"])
def test_every_pass_keeps_them(program: Program, limit: int) -> None:
    sloped = with_jacobian(program, PAIRS)
    for name, after in walk_passes(sloped, Choices(unroll_limit=limit)):
        close(evaluate_program(after, _numbers(inputs())), expected())
        looped = any(n.op == "running" for n in after.lines)
        assert looped == (limit == 0 or name == "clean"), name


Run = Callable[[Program], Interpreter]


@pytest.mark.parametrize(
    "run",
    [Interpreter, Kernel, lambda p: Kernel(p, choices=Choices(unroll_limit=0))],
    ids=["interpret", "lines", "loops"],
)
def test_executors_run_them(program: Program, run: Run) -> None:
    close(run(with_jacobian(program, PAIRS))(inputs())[0], expected())
    adjoint = with_adjoint(program, ["a", "b"], ["x", "y"])
    close(run(adjoint)(inputs() | bars())[0], expected() | pulled())


def test_graphs_print_them(program: Program) -> None:
    outputs, _, blocks = printing(program, every_pair(program)).run(inputs(), slopes=True)
    close(outputs, expected())
    close({f"{y}:{x}": block for (y, x), block in blocks.items()}, expected())


@pytest.mark.exhaustive
def test_inductor_compiles_them(program: Program, tmp_path: Path) -> None:
    run = compiled(program, every_pair(program), tmp_path)
    outputs, _, blocks = run.run(inputs(), slopes=True)
    assert_close(outputs, {n: x for n, x in expected().items() if ":" not in n})
    close({f"{y}:{x}": block for (y, x), block in blocks.items()}, expected())


def test_a_solve_reads_them() -> None:
    """Also where the axis hides which entries a residual reads, so that it must be written out."""
    g = Builder({"cell": CELLS})
    axes = (Axis("cell"),)
    f = g.node("input", (), ("f", 0), axes)
    u = g.placeholder("unknown", axes, "u")
    grown = g.along("running", g.emit("softplus", u), axis="cell")
    row = g.emit("sub", g.emit("add", u, g.emit("mul", 0.3, grown)), f)
    variables = [(Variable(n, Scalar, axes, (x,)),) for n, x in (("u", u), ("r", row))]
    solve = Solve("cells", *variables, (), Newton(abs_tol=1e-13, rel_tol=1e-15))
    (item,) = read_items(g, close_solve(g, solve, [f]))
    given = (Variable("f", Scalar, axes, (f,)),)
    whole = Program(g.extents, given, (), (Variable("u", Scalar, axes, (item,)),))
    sloped = verify(with_jacobian(whole, [("u", "f")]))
    point = {"f": inputs()["x"]}
    for run in (Interpreter(sloped), Kernel(sloped)):
        found, (status,) = run(point)
        assert status.converged.all()
        x = found["u"]
        left = x + 0.3 * torch.nn.functional.softplus(x).cumsum(1) - point["f"]
        assert float(left.abs().max()) < 1e-12
        triangle = torch.tril(torch.ones(CELLS, CELLS, dtype=torch.float64))
        by_u = torch.eye(CELLS).double() + 0.3 * triangle * torch.sigmoid(x)[:, None, :]
        torch.testing.assert_close(found["u:f"], torch.linalg.inv(by_u), rtol=1e-10, atol=1e-11)
