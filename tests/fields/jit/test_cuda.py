"""What is printed for GPUs gives what torch gives.

It is tried without one: the same text is compiled as C++, and its threads run one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.codegen import nvrtc
from ingot.codegen.frames import THREADS as FRAME
from ingot.codegen.grids import THREADS_PER_GROUP as THREADS
from ingot.errors import IngotError
from ingot.fields.jit import native
from ingot.fields.jit.capture import capture
from ingot.fields.jit.fuse import Fused, KernelCall, Loop, fuse
from ingot.fields.jit.native import Launch, ready
from ingot.fields.jit.operations import name_of
from ingot.fields.jit.program import SequenceSource, write
from ingot.fields.jit.schema import Schema, schema_of, sources_of
from ingot.fields.spaces import Space, space
from ingot.fields.step import Ambient, Buffer, State, Step, evaluate
from tests.codegen.on_host import HostFunction, load_on_host

from .cases import cahn_hilliard, state_of
from .every import STEP, fields


def on_host(program: SequenceSource, folder: Path) -> dict[str, Launch]:
    """The loops of a program for GPUs, run by this process."""
    names = [slot.name for slot in program.kernels]
    found = load_on_host(program.source, names, folder, FRAME.read_headers())

    def start(run: HostFunction) -> Callable[[int, bytes], None]:
        return lambda blocks, task: run(blocks, THREADS, 0, task)

    return {name: Launch(start(run)) for name, run in found.items()}


class Printed:
    """Steps compiled for a GPU and run on this machine; `run` takes a state."""

    def __init__(self, steps: tuple[Step, ...], state: State, folder: Path) -> None:
        self.steps, self.sources = steps, sources_of(steps)
        self.gives = tuple(dict.fromkeys(name for step in steps for name in step.gives))
        inputs = self.inputs(state)
        self.schema = schema_on(inputs, state.space)
        made = fuse(capture(steps, self.sources, self.gives, self.schema, state.space))
        aimed = replace(made.captured, schema=replace(self.schema, device="cuda:0"))
        self.program = write(replace(made, captured=aimed))
        loops = on_host(self.program, folder)
        self.function = ready(replace(self.program, device="cpu"), loops)

    def inputs(self, state: State) -> list[Tensor]:
        return [*state.space.tensors(), *(state.look_up(source) for source in self.sources)]

    def agrees(self, state: State, tolerance: float) -> None:
        """The loops give what the steps give."""
        expected = evaluate(self.steps, state.look_up)
        for name, found in zip(self.gives, self.function(self.inputs(state)), strict=True):
            same(found, expected[name], tolerance, name)


def schema_on(inputs: Sequence[Tensor], box: Space, device: str = "cpu") -> Schema:
    found = schema_of(inputs, box)
    assert found is not None
    return replace(found, device=device)


def same(found: Tensor, expected: Tensor, tolerance: float, name: str) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape, name
    close = torch.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert close, (name, found.flatten()[:4], expected.flatten()[:4])


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """Every operation in one loop."""
    state = State(space((7, 5)), buffers=fields((7, 5)))
    return Printed((STEP,), state, tmp_path_factory.mktemp("kernels"))


def fused_on_gpu(steps: tuple[Step, ...], state: State, *wanted: str) -> Fused:
    """Steps captured as on a GPU, which need not be there."""
    sources = sources_of(steps)
    inputs = [*state.space.tensors(), *(state.look_up(source) for source in sources)]
    schema = schema_on(inputs, state.space, "cuda:0")
    return fuse(capture(steps, sources, wanted, schema, state.space))


@pytest.mark.parametrize("sizes", [(16,), (16, 14), (12, 10, 9)])
def test_a_sequence_on_a_gpu_is_captured_without_one(sizes: tuple[int, ...]) -> None:
    made = fused_on_gpu(cahn_hilliard(), state_of(sizes, "c"), "rate", "c")
    program = write(made)
    assert made.after == 5
    assert program.device == "cuda:0"
    assert [slot.name for slot in program.kernels] == ["kernel_0", "kernel_1"]
    assert program.source.count("__global__") == 2
    assert f"Task<2, 1, {len(sizes)}>" in program.source


def beside(a: Tensor) -> Tensor:
    table = torch.tensor([0.5, 1.5], dtype=a.dtype)
    return a * torch.tensor(0.5, dtype=a.dtype) + (2 * table).sum()


def test_what_lies_beside_the_gpu_stays_outside_loops_unless_it_is_a_number() -> None:
    step = Step("beside", beside, {"a": Buffer("a")}, ("b",))
    made = fused_on_gpu((step,), state_of((8, 9), "a"), "b")
    loops = [[name_of(n) for n in u.nodes] for u in made.units if isinstance(u, Loop)]
    calls = [name_of(u.node) for u in made.units if isinstance(u, KernelCall)]
    assert loops == [["mul.Tensor"]]
    assert calls[-3:] == ["mul.Tensor", "sum.default", "add.Tensor"]


def test_the_source_needs_nothing_that_nvrtc_lacks(operations: Printed) -> None:
    headers = FRAME.read_headers()
    texts = [operations.program.source, headers["lanes.h"], headers["powers.h"]]
    included = {row for text in texts for row in text.splitlines() if "#include" in row}
    # the first comes with compile_cubin, the others with the frame
    assert included == {"#include <cstdint>", '#include "lanes.h"', '#include "powers.h"'}
    assert not any("std::" in text for text in texts)


@pytest.mark.parametrize("sizes", [(7, 5), (33, 129)])
def test_operations_give_what_torch_gives(operations: Printed, sizes: tuple[int, ...]) -> None:
    assert len(operations.program.kernels) == 1
    operations.agrees(State(space(sizes), buffers=fields(sizes)), 1e-12)


@pytest.mark.parametrize("how", ["turned", "spread", "sliced", "part"])
def test_operands_may_have_any_strides(operations: Printed, how: str) -> None:
    turn: dict[str, Callable[[Tensor], Tensor]] = {
        "turned": lambda x: x[:10, :12].T,
        "spread": lambda x: x[:1, :10].expand(12, 10),
        "sliced": lambda x: x[::2, ::2],
        "part": lambda x: x[3:15, 4:14],
    }
    buffers = {name: turn[how](x) for name, x in fields((24, 20)).items()}
    operations.agrees(State(space((12, 10)), buffers=buffers), 1e-12)


def test_results_lie_in_memory_like_operands(operations: Printed) -> None:
    buffers = {name: x.T for name, x in fields((12, 10)).items()}
    state = State(space((10, 12)), buffers=buffers)
    found = operations.function(operations.inputs(state))
    assert {x.stride() for x in found} == {(1, 10)}


@pytest.mark.parametrize("sizes", [(0, 5), (6, 0), (1, 5), (6, 1), (1, 1)])
def test_no_points_and_one_are_a_grid_too(operations: Printed, sizes: tuple[int, ...]) -> None:
    state = State(space((6, 5)), buffers=fields((6, 5)))
    by_name: dict[str | int, int] = {"n0": sizes[0], "n1": sizes[1]}
    inputs = [
        x[tuple(slice(by_name.get(n)) for n in shape)]
        for x, shape in zip(operations.inputs(state), operations.schema.shapes, strict=True)
    ]
    expected = STEP.function(**{n: x[: sizes[0], : sizes[1]] for n, x in state.buffers.items()})
    results = operations.function(inputs)
    for name, found, wanted in zip(operations.gives, results, expected, strict=True):
        same(found, wanted, 1e-12, name)


def test_threads_take_several_points_where_there_are_fewer_of_them(
    operations: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "MAX_BLOCKS", 2)
    operations.agrees(State(space((41, 37)), buffers=fields((41, 37))), 1e-12)


def parts(a: Tensor, space: Space, dt: Tensor) -> tuple[Tensor, ...]:
    x, y = space.axes[:2]
    bump = torch.exp(-x * x) + torch.sin(y) * dt
    inside = (x > 0.5) & (a < 0.6)
    hat = space.forward(torch.where(inside, a * bump, a / space.size(0)))
    shifted = hat * torch.exp(1j * space.waves[0]) / (1 + space.k2)
    return bump, inside, shifted, shifted.abs(), hat.conj() * shifted


PARTS = Step(
    "parts", parts, {"a": Buffer("a"), "space": Ambient("space"), "dt": Ambient("dt")},
    ("bump", "inside", "shifted", "size", "product"),
)  # fmt: skip


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("steps", [(PARTS,), cahn_hilliard()], ids=["parts", "cahn_hilliard"])
@pytest.mark.parametrize("sizes", [(8, 9), (10, 12, 7)])
def test_values_of_all_kinds_and_some_axes_meet(
    steps: tuple[Step, ...],
    sizes: tuple[int, ...],
    dtype: torch.dtype,
    tolerance: float,
    tmp_path: Path,
) -> None:
    state = state_of(sizes, "a", "c", dtype=dtype)
    printed = Printed(steps, state, tmp_path)
    assert f"#define INGOT_REAL {'double' if dtype == torch.float64 else 'float'}" in (
        printed.program.source
    )
    larger = tuple(2 * size + 5 for size in sizes)
    for each in (state, state_of(larger, "a", "c", dtype=dtype)):
        printed.agrees(each, tolerance)


def test_odd_values_are_what_torch_makes_of_them(tmp_path: Path) -> None:
    odd = [0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-310, -1.5, 2.5, -2.5, 1e300]
    numbers = torch.tensor(odd, dtype=torch.float64)
    grid, other = torch.meshgrid(numbers, numbers, indexing="ij")

    def functions(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return (
            torch.minimum(a, b), torch.maximum(a, b), a < b, a == b, torch.sign(a), a.clamp(-1, 1),
            torch.where(a > b, a, b), torch.floor(a), torch.round(a), torch.trunc(a), torch.ceil(a),
            a.logical_not(), torch.where(a < b, torch.inf, a), torch.where(a < b, torch.nan, b),
        )  # fmt: skip

    gives = tuple(f"r{k}" for k in range(14))
    step = Step("odd", functions, {"a": Buffer("a"), "b": Buffer("b")}, gives)
    state = State(space((10, 10)), buffers={"a": grid, "b": other})
    Printed((step,), state, tmp_path).agrees(state, 0)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_the_compiler_of_cuda_takes_every_operation(
    operations: Printed, architecture: str, tmp_path: Path
) -> None:
    try:
        nvrtc.open_nvrtc()
    except IngotError as error:
        pytest.skip(str(error))
    source, headers = operations.program.source, FRAME.read_headers()
    code = nvrtc.compile_cubin(source, architecture, headers, tmp_path)
    assert code.startswith(b"\x7fELF")
    with pytest.raises(RuntimeError, match="NVRTC cannot compile a kernel for sm_90"):
        nvrtc.compile_cubin("none", "sm_90", folder=tmp_path)


def test_machine_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def translated(source: str, architecture: str, headers: object) -> bytes:
        compiled.append(f"{source} {architecture}")
        return b"\0code"

    monkeypatch.setattr(nvrtc, "_translate", translated)
    versions = iter(["12.9", "12.9", "12.9", "13.0"])
    monkeypatch.setattr(nvrtc, "read_version", lambda: next(versions))
    for architecture in ("sm_80", "sm_80", "sm_90", "sm_90"):
        assert nvrtc.compile_cubin("a", architecture, folder=tmp_path) == b"\0code"
    assert compiled == ["a sm_80", "a sm_90", "a sm_90"]
