"""capture: steps -> one graph of torch operations whose sizes are open.

In: steps, what they read, a schema. Out: a Captured. Runs under one lock for the whole process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from ingot.fields.jit.operations import name_of
from ingot.fields.jit.schema import TRACED, Schema
from ingot.fields.spaces import Space
from ingot.fields.step import Ambient, Buffer, Source, Step, perform
from ingot.graphs import torch_private
from ingot.graphs.sizes import Open

__all__ = ["LOCK", "Captured", "Untraceable", "capture", "draws"]

LOCK = threading.RLock()
"""Held while a graph is captured: torch's tracing is one for the whole process."""


class Untraceable(Exception):
    """Why steps cannot be one graph; `step` is the one at fault, if it is known."""

    def __init__(self, why: str, step: Step | None = None) -> None:
        super().__init__(why)
        self.step = step


@dataclass(frozen=True, slots=True)
class Captured:
    """A graph of torch operations, its inputs the tensors of the space and then the sources."""

    module: Any
    schema: Schema
    real: torch.dtype
    sizes: Open

    def __str__(self) -> str:
        return self.module.code.strip()

    def require_open(self) -> None:
        """Raise where a size that is open has become a number, or another size."""
        refuse_decided(self.sizes.tied())


def capture(
    steps: Sequence[Step],
    sources: Sequence[Source],
    wanted: Sequence[str],
    schema: Schema,
    space: Space,
) -> Captured:
    """The graph that gives the wanted buffers."""
    with LOCK:
        mode = torch_private.fake_mode()
        inputs = [
            torch_private.fake_tensor(
                mode, [TRACED[n] if isinstance(n, str) else n for n in shape],
                [isinstance(n, str) for n in shape], dtype, schema.device,
            )
            for shape, dtype in zip(schema.shapes, schema.dtypes, strict=True)
        ]  # fmt: skip
        # before the trace, which may put a number in the place of a size
        names = {
            torch_private.expression_of(size): name
            for x, shape in zip(inputs, schema.shapes, strict=True)
            for size, name in zip(x.shape, shape, strict=True) if isinstance(name, str)
        }  # fmt: skip
        held = len(space.tensors())

        def whole(*given: Tensor) -> tuple[Tensor, ...]:
            box = space.rebuilt(given[:held])
            values: dict[Source, Any] = dict(zip(sources, given[held:], strict=True))
            values[Ambient("space")] = box
            for step in steps:
                found = performed(step, lambda source: values[source])
                values.update((Buffer(name), value) for name, value in found.items())
            return tuple(values[Buffer(name)] for name in wanted)

        with torch.no_grad(), mode:
            module = torch_private.trace_values(whole, inputs)
            schemas = [(node, torch_private.schema_of(node.target)) for node in module.graph.nodes]
            mutating = [node for node, found in schemas if found is not None and found.is_mutable]
            if any(root_of(node.args[0]).op == "get_attr" for node in mutating):
                raise Untraceable("it writes into a tensor that it keeps")
            if mutating:
                module = torch_private.trace_values(torch.func.functionalize(whole), inputs)
    sizes = Open(TRACED, (mode, names))
    refuse_decided(find_decided(sizes))
    copy_constants(module)
    return Captured(module, schema, space.k2.dtype, sizes)


COPIES = ("lift_fresh_copy.default", "_to_copy.default")
"""Calls that give a tensor again, of another type or elsewhere."""


def copy_constants(module: Any) -> None:
    """Keep constants as the graph copies them, to a GPU as a rule, so that no call copies them."""
    for node in list(module.graph.nodes):
        source = node.args[0] if node.args and name_of(node) in COPIES else None
        if isinstance(source, Node) and source.op == "get_attr":
            value = node.target(getattr(module, str(source.target)), **node.kwargs)
            module.register_buffer(node.name, value)
            with module.graph.inserting_before(node):
                kept = module.graph.get_attr(node.name)
            kept.meta = dict(node.meta)
            node.replace_all_uses_with(kept)
            module.graph.erase_node(node)
            if not source.users:
                module.graph.erase_node(source)
    module.recompile()


def performed(step: Step, look_up: Callable[[Source], Any]) -> dict[str, Tensor]:
    """What a step gives while it is captured; an error names the step."""
    try:
        with torch_private.run_operations(refuse_draws):
            found = perform(step, look_up)
    except Untraceable as error:
        raise Untraceable(str(error), step) from error
    except Exception as error:
        raise Untraceable(reason_of(error), step) from error
    if not all(isinstance(value, Tensor) for value in found.values()):
        raise Untraceable("it gives something that is not a tensor", step)
    return found


def reason_of(error: Exception) -> str:
    """An error of torch in a few words."""
    if torch_private.reads_values(error):
        return "it reads the value of a tensor"
    name = type(error).__name__
    first = str(error).strip().splitlines()
    return f"{name}: {first[0]}" if first else name


def root_of(node: Any) -> Any:
    """The node whose memory a node looks at or writes into, through all views."""
    while node.op == "call_function" and node.all_input_nodes:
        returns = getattr(getattr(node.target, "_schema", None), "returns", ())
        if not returns or returns[0].alias_info is None:
            break
        node = node.all_input_nodes[0]
    return node


def draws(target: Any) -> bool:
    """Whether an operation draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def refuse_draws(operation: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operation but one that draws random numbers: to check it would draw others."""
    if draws(operation):
        raise Untraceable("it draws random numbers")
    return operation(*args, **kwargs)


def refuse_decided(decided: Iterable[str]) -> None:
    """Raise where something was decided by sizes that are open."""
    if told := ", ".join(decided):
        raise Untraceable(f"it holds for some sizes of the grid only: {told}")


def find_decided(sizes: Open) -> Iterator[str]:
    """What the captured code has decided by the sizes it saw.

    Torch itself also compares sizes, to choose strides that nothing here depends on.
    """
    yield from sizes.tied()
    for text, guard in sizes.guards().items():
        number = any(side.is_number for side in getattr(guard.expr, "args", ()))
        equal = type(guard.expr).__name__ in ("Equality", "Eq")
        user, torch_line = torch_private.frames_of(guard)
        file = getattr(torch_line, "filename", None)
        if (equal and number) or (
            torch_line is not None and str(torch_private.FOLDER) not in str(file)
        ):
            line = user or torch_line
            file = getattr(line, "filename", None)
            yield text if file is None else f"{text} ({Path(file).name}:{line.lineno})"
