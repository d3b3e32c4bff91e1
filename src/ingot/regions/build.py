"""`compile`: a module and what the user says of its blocks -> a module of compiled blocks."""

import copy
import inspect
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from torch import Tensor, fx, nn

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.graphs import torch_private
from ingot.graphs.cuda_graphs import gpu
from ingot.graphs.recorded import Dispatcher
from ingot.graphs.sizes import Dynamic, find_absent, find_formless, find_unknown
from ingot.graphs.torch_private import pytree
from ingot.graphs.tree import flatten
from ingot.keywords import check_keywords
from ingot.regions.compiled import Compiled, name_parameters
from ingot.regions.mark import Blocks, find_marks, find_no_switch
from ingot.regions.units import UNITS, Compiler
from ingot.train.call import split_example

if TYPE_CHECKING:
    from ingot.regions.aot import Loaded

__all__ = ["compile"]

COMPILERS: dict[str, Compiler] = {
    "inductor": torch_private.compile_by_inductor,
    "eager": torch_private.run_as_written,
}


def compile_recorded(graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """Compile by Inductor, backward too; code that runs on one GPU alone is recorded there."""
    with torch_private.wrap_inductor_code(_wrap_code):
        return torch_private.compile_by_inductor(graph, inputs)


def _wrap_code(code: torch_private.InductorCode) -> Callable[..., Any]:
    places = [device.partition(":") for device in code.devices]
    if [kind for kind, _, _ in places] != ["cuda"]:
        return code.run
    return Dispatcher(
        code.run, gpu(int(places[0][2])), static=code.static, writes=code.writes,
        backward=code.is_backward, open_sizes=code.open_sizes,
    )  # fmt: skip


@overload
def compile(
    module: nn.Module, example: object = ..., blocks: Blocks = ..., mode: Literal["jit"] = ..., *,
    dynamic: Dynamic = ..., backend: Literal["inductor", "eager"] | Compiler = ...,
    measure: bool = ..., cuda_graphs: bool = ...,
) -> Compiled: ...  # fmt: skip


@overload
def compile(
    module: nn.Module, example: object, blocks: Blocks = ..., *, mode: Literal["aot"],
    output: str | Path | None, dynamic: Dynamic = ..., grad: bool | None = ...,
    backend: Literal["inductor", "eager"] | Compiler = ..., measure: bool = ...,
    cuda_graphs: bool = ...,
) -> "Loaded": ...  # fmt: skip


@check_keywords
def compile(
    module: nn.Module,
    example: object = None,
    blocks: Blocks = "auto",
    mode: Literal["jit", "aot"] = "jit",
    *,
    dynamic: Dynamic = None,
    backend: Literal["inductor", "eager"] | Compiler = "inductor",
    grad: bool | None = None,
    output: str | Path | None = None,
    measure: bool = False,
    cuda_graphs: bool = True,
) -> "Compiled | Loaded":
    """Compile each distinct block of a module once, and what lies between them.

    With "jit" nothing runs before the first call, which compiles what it needs, as
    `torch.compile` does; with "aot" a package is written that `load` reads without the source.

    example: a tensor, a tuple of arguments, or a dictionary of keyword arguments; for "aot" and
        `measure`.
    dynamic: names of the axes that may vary, `{0: "batch", 1: "length"}` for all tensors, a list of
        these for each, `{"x": {0: "batch"}}` by arguments, or "batch" for the first axis of all.
    backend: what compiles the pieces: "inductor", "eager", or a backend of torch.compile.
    grad: with "aot", whether for training; by default if gradients are on and a parameter wants
        one.
    output: with "aot" the folder of the package.
    measure: also compile a copy of the module so, and whole with torch.compile, both from empty
        caches, for the report.
    cuda_graphs: on GPUs, whether calls of a block, and their backward passes, are recorded and
        replayed where they are met again; a recording keeps the memory that a call needs.
    """
    raise_if(_find_wrong(module, dynamic, example))
    raise_if(_find_ignored(mode, output, grad))
    switches = {"measure": measure, "cuda_graphs": cuda_graphs, "grad": grad or False}
    raise_if(problem for each in switches.items() for problem in find_no_switch(*each))
    if mode == "aot":
        from ingot.package.write import choose_place
        from ingot.regions.aot import package

        learns = any(p.requires_grad for p in module.parameters())
        wanted = torch.is_grad_enabled() and learns if grad is None else grad
        for what, value in (("output=FOLDER", output), ("an example", example)):
            if value is None:
                told = f'mode="aot" captures a call, writes a package, and was not given {what}'
                raise IngotError([Problem("region-argument", told, None, f"add {what}")])
        place = choose_place(output)  # before anything is compiled
        found = package(module, example, blocks, dynamic, place, grad=wanted, compiler=backend)
        if measure:
            found.report.whole_seconds = measure_whole(module, *split_example(example))
        return found
    compiler = COMPILERS.get(backend, backend) if isinstance(backend, str) else backend
    if compiler is torch_private.compile_by_inductor and cuda_graphs:
        compiler = compile_recorded
    if not callable(compiler):
        fix = did_you_mean(str(compiler), COMPILERS) or 'give "inductor", "eager" or a function'
        told = f"backend='{compiler}' is no way to compile pieces"
        raise IngotError([Problem("region-argument", told, None, fix)])
    result = Compiled(module, find_marks(module, blocks), compiler, dynamic)
    if measure:
        _measure(result, example)
    return result


def _find_ignored(mode: object, output: object, grad: object) -> Iterator[Problem]:
    """Words that would say nothing."""
    if mode not in ("jit", "aot"):
        fix = did_you_mean(str(mode).lower(), ("jit", "aot")) or 'give "jit" or "aot"'
        yield Problem("region-argument", f"there is no mode={mode!r}", None, fix)
    for name, value in (("output", output), ("grad", grad)):
        if mode == "jit" and value is not None:
            told = f"'{name}' is of packages, and mode='jit' writes none"
            yield Problem("region-argument", told, None, f"add mode='aot', or leave out '{name}'")


def _find_wrong(module: object, dynamic: Any, example: object) -> Iterator[Problem]:
    """What is no module, and what 'dynamic' says of arguments that it does not have."""
    if not isinstance(module, nn.Module):
        told = f"compile takes an nn.Module, and was given a {type(module).__name__}"
        fix = "give the module that holds the blocks; ingot.train.joint compiles functions"
        yield Problem("region-argument", told, None, fix)
        return
    formless = [*find_formless(dynamic)]
    yield from formless
    if not formless and example is not None:
        leaves = flatten(example)[0]
        tensors = [(n, x) for n, x in leaves if isinstance(x, Tensor)]
        yield from find_absent(dynamic, tensors)
    kinds = {p.kind for p in inspect.signature(module.forward).parameters.values()}
    if isinstance(dynamic, Mapping) and inspect.Parameter.VAR_KEYWORD not in kinds:
        known = name_parameters(module)
        words = {name: re.split(r"[.\[]", name)[0] for name in dynamic if isinstance(name, str)}
        yield from find_unknown([n for n, word in words.items() if word not in known], known)


def _measure(result: Compiled, example: object) -> None:
    """Fill the report by compiling a copy from empty caches: the module is not called."""
    if example is None:
        told, fix = "measure=True needs a call to measure", "give an example"
        raise IngotError([Problem("region-argument", told, None, fix)])
    args, kwargs = split_example(example)
    trial = copy.deepcopy(result)
    kept = UNITS.copy()
    UNITS.clear()
    with torch_private.fresh_cache():
        _differentiate(trial, args, kwargs)
    UNITS.update(kept)
    result.report = trial.report
    result.report.whole_seconds = measure_whole(result.module, args, kwargs)


def measure_whole(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """How long torch.compile takes for the whole module from empty caches, backward included."""
    torch.compiler.reset()
    whole = torch.compile(copy.deepcopy(module))
    begun = time.perf_counter()
    with torch_private.fresh_cache():
        _differentiate(whole, args, kwargs)
    took = time.perf_counter() - begun
    torch.compiler.reset()
    return took


def _differentiate(
    run: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Call a module, and go back where gradients are wanted."""
    found = run(*args, **kwargs)
    tensors = [x for x in pytree.tree_leaves(found) if isinstance(x, Tensor) and x.requires_grad]
    if tensors:
        torch.autograd.backward(tensors, [torch.ones_like(x) for x in tensors])
