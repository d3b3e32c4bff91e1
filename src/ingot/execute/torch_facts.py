"""What torch does not promise: private names, settings that matter, faults; seen in torch 2.13.0.

Each has a test in tests/execute/test_torch_facts.py that fails once it is no longer so.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

__all__ = [
    "CHILD_ENVIRONMENT", "OPTIONS", "TRACED_BATCH", "baked", "compiled_files", "fake_inputs",
    "loaded", "one_thread", "packaged", "same_layout",
]  # fmt: skip

# 2.13: six dry compiles (15 s) ask which instructions g++ can emit; with this set none is asked.
CHILD_ENVIRONMENT = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}

# 2.13: a size of 0 or 1 would be taken for a constant; the size decides how many threads are used.
TRACED_BATCH = 10007

OPTIONS: dict[str, Any] = {
    "aot_inductor.package": True,
    # 2.13: pointwise operations are inlined into each of their users until there are this many of
    # them, so that the default of 50 takes time exponential in the length of a chain
    "realize_opcount_threshold": 8,
    "realize_reads_threshold": 8,
    "realize_acc_reads_threshold": 10**6,
    # 2.13: loops are split at 64 operations by default, and run four times slower
    "max_fusion_size": 10**6,
    "cpp.max_horizontal_fusion_size": 10**6,
    # 2.13: the number of threads of the compiling process would be written into the code
    "cpp.dynamic_threads": True,
    # 2.13: the last points, fewer than a vector, would have masked code of their own, on which g++
    # spends four times as long as on all else
    "cpp.enable_loop_tail_vec": False,
    # 2.13: g++ spends five seconds on what surrounds the kernels of every graph, one less like this
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "aot_inductor.enable_line_tables": False,
    # 2.13: indices that come from a table of ours would be checked at run time
    "assert_indirect_indexing": False,
}

_MODEL = "model"


def fake_inputs(arguments: Sequence[int], dtype: torch.dtype) -> tuple[Any, list[Tensor]]:
    """A mode for tracing, and arrays without numbers: (rows, batch), or (batch,) for 0 rows."""
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import (
        DimDynamic,
        ShapeEnv,
        StatelessSymbolicContext,
    )

    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    found = []
    for rows in arguments:
        shape = (rows, TRACED_BATCH) if rows else (TRACED_BATCH,)
        kinds: list[Any] = [DimDynamic.STATIC] * (len(shape) - 1) + [DimDynamic.DUCK]
        context: Any = StatelessSymbolicContext(
            dynamic_sizes=kinds, constraint_sizes=[None] * len(shape)
        )
        found.append(mode.from_tensor(torch.empty(shape, dtype=dtype), symbolic_context=context))
    return mode, found


def baked(mode: Any) -> list[str]:
    """What a trace has fixed that must stay open: 2.13 bakes a batch in without a word."""
    shapes = mode.shape_env
    found = [f"{s} = {e}" for s, e in shapes.replacements.items() if e.is_number]
    return found + [
        str(g.expr) for g in shapes.guards if type(g.expr).__name__ in ("Equality", "Eq")
    ]


def compiled_files(
    module: torch.fx.GraphModule, inputs: list[Tensor], scratch: Path, **settings: Any
) -> list[Any]:
    """The files of a graph compiled ahead of time; settings go before ours."""
    import torch._inductor

    wanted = {**OPTIONS, **settings, "aot_inductor.output_path": str(scratch / "graph")}
    # 2.11 lacks settings that only save time
    known = set(torch._inductor.list_options())
    options = {name: value for name, value in wanted.items() if name in known}
    files = torch._inductor.aot_compile(module, tuple(inputs), options=options)
    assert isinstance(files, list)
    return files


def packaged(path: Path, files: list[Any]) -> None:
    """Write one graph into an archive of torch's."""
    from torch.export.pt2_archive._package import package_pt2

    package_pt2(str(path), aoti_files={_MODEL: files})


@cache
def _openmp() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "omp_set_num_threads") else None


@contextmanager
def one_thread(wanted: bool) -> Iterator[None]:
    """This thread alone, if wanted. 2.13: a graph wakes all threads even for a single point."""
    openmp = _openmp() if wanted else None
    if openmp is None:
        yield
        return
    before = openmp.omp_get_max_threads()
    openmp.omp_set_num_threads(1)
    try:
        yield
    finally:
        openmp.omp_set_num_threads(before)


def loaded(path: Path) -> Any:
    """A compiled graph. 2.13: its `boxed_run` takes a list, empties it, and checks nothing.

    The public loader imports the compiler, looks for g++ and reads JSON at every call.
    """
    native: Any = torch._C
    return native._aoti.AOTIModelPackageLoader(str(path), _MODEL, False, 1, -1)


def same_layout(values: Sequence[Tensor]) -> Callable[..., bool]:
    """Whether tensors have the type, shape, strides, precision, device, and need of a gradient of
    these. 2.13: what guards compiled functions takes 0.1 µs a tensor, attributes take 0.6.
    """
    native: Any = torch._C
    guards = getattr(native._dynamo.guards, "TensorGuards", None)
    if guards is None:
        facts = [_layout(x) for x in values]
        return lambda *given: [_layout(x) for x in given] == facts
    return guards(*values, dynamic_dims_sizes=None, dynamic_dims_strides=None).check


def _layout(x: Tensor) -> tuple[object, ...]:
    return type(x), x.shape, x.stride(), x.dtype, x.device, x.requires_grad, x.is_neg()
