"""write: fused units -> a Python text that calls torch and kernels, and the source of those.

Nothing in it refers to torch's graphs, so that another process can run it as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor
from torch.fx import Node

from ingot.codegen.cache import open_cache
from ingot.codegen.grids import GridLoop, write_grid_unit
from ingot.fields.jit.fuse import Fused, KernelCall, Loop, Unit
from ingot.fields.jit.kernels import Printed, print_loop
from ingot.fields.jit.operations import name_of, sizes_of
from ingot.fields.jit.schema import TRACED
from ingot.graphs.torch_private import OpOverload, hint_of

__all__ = ["SequenceSource", "find_sequence", "forget_sequence", "keep_sequence", "write"]

FRESH = ("_fft_r2c.default", "_fft_c2c.default", "_fft_c2r.default")
"""Calls whose result shares no memory with their arguments, and which keep none of them."""

RENAMED = {f"aten.{name}.default": "aten.reshape.default" for name in ("view", "_unsafe_view")}
"""Calls that ask for strides which a tensor from outside may not have."""

METHODS = {
    "permute.default": "permute", "select.int": "select", "unsqueeze.default": "unsqueeze",
}  # fmt: skip
"""Calls that take a third of the time as methods: a step of a lattice has dozens."""

KIND = "sequence"

LARGE = 4096
"""How many numbers a tensor has that is not written."""


@dataclass(frozen=True, slots=True)
class SequenceSource:
    """A sequence ready to be stored: `run` of the text takes the inputs, gives the outputs.

    kernels: the loops that it calls; real: their numbers in C++; reads: which inputs it looks at;
    the others may be anything.
    """

    text: str
    kernels: tuple[GridLoop, ...]
    real: str
    before: int
    after: int
    reads: tuple[int, ...]
    constants: dict[str, Tensor] = field(default_factory=dict)
    device: str = "cpu"

    @property
    def source(self) -> str:
        """The source of the library of its loops."""
        return write_grid_unit(self.kernels, self.real, torch.device(self.device).type)

    def __str__(self) -> str:
        return self.text


def find_sequence(digest: str, place: Path | None = None) -> SequenceSource | None:
    """The program of a digest, if there is one; an entry that cannot be read is none."""
    content = open_cache(place).find(KIND, digest)
    try:
        decode = msgspec.json.Decoder(SequenceSource, dec_hook=_read_tensor).decode
        return None if content is None else decode(content)
    except (ValueError, TypeError, RuntimeError):
        return None


def keep_sequence(digest: str, program: SequenceSource, place: Path | None = None) -> None:
    """Write a program; one that holds large tensors is not written."""
    if not any(x.numel() > LARGE or x.is_complex() for x in program.constants.values()):
        content = msgspec.json.encode(program, enc_hook=_write_tensor)
        open_cache(place).put(KIND, digest, content)


def _write_tensor(x: Tensor) -> Any:
    """A tensor by its bytes: numbers as text would lose what is not finite."""
    kind = str(x.dtype).removeprefix("torch.")
    return kind, str(x.device), x.shape, x.flatten().resolve_neg().view(torch.uint8).tolist()


def _read_tensor(_: type, found: Any) -> Tensor:
    kind, device, shape, content = found
    x = torch.tensor(content, dtype=torch.uint8, device=device)
    return x.view(getattr(torch, kind)).reshape(shape)


def forget_sequence(digest: str, place: Path | None = None) -> None:
    """Remove a program."""
    open_cache(place).forget(KIND, digest)


def write(fused: Fused) -> SequenceSource:
    """The program of fused units."""
    module = fused.captured.module
    loops = [each for each in fused.units if isinstance(each, Loop)]
    printed = {each: print_loop(fused, each, f"kernel_{at}") for at, each in enumerate(loops)}
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    read = {a for u in fused.units for a in needs(u, fused)} | set(fused.outputs)
    # the axes of the space and then its waves come first, each with one size
    sizes = {
        name: at
        for at, shape in enumerate(fused.captured.schema.shapes[:6])
        for name in shape if isinstance(name, str)
    }  # fmt: skip
    lines = [f"{node.name} = inputs[{at}]" for at, node in enumerate(inputs) if node in read]
    lines += [f"{name} = inputs[{at}].shape[{name[1:]}]" for name, at in sizes.items()]
    lines += bodies(fused, printed)
    looked_at = {*sizes.values(), *(at for at, node in enumerate(inputs) if node in read)}
    lines.append(f"return {listed(map(text, fused.outputs))}")
    body = "".join(f"    {line}\n" for line in lines)
    calls = (each.node for each in fused.units if isinstance(each, KernelCall))
    kept = [str(node.target) for node in calls if node.op == "get_attr"]
    return SequenceSource(
        text=f"def run(inputs):\n{body}",
        kernels=tuple(each.loop for each in printed.values()),
        real="double" if fused.captured.real == torch.float64 else "float",
        before=fused.before,
        after=fused.after,
        reads=tuple(sorted(looked_at)),
        constants={name: getattr(module, name) for name in kept},
        device=fused.captured.schema.device,
    )


def needs(unit: Unit, fused: Fused) -> Iterable[Node]:
    """The values in memory that a unit reads."""
    return map(fused.view.base, unit.reads)


def bodies(fused: Fused, printed: dict[Loop, Printed]) -> Iterator[str]:
    """One line for each unit, and what nothing needs after it."""
    last: dict[Node, int] = {}
    for at, each in enumerate(fused.units):
        gives = printed[each].gives if isinstance(each, Loop) else (each.node,)
        made = (node for node in gives if node not in fused.view.shifted)
        last |= dict.fromkeys((*made, *needs(each, fused)), at)
    last |= dict.fromkeys((n for n in fused.outputs if isinstance(n, Node)), len(fused.units))
    ending: dict[int, list[Node]] = {}
    for node, at in last.items():
        ending.setdefault(at, []).append(node)
    own = owned(fused, printed)
    begun: dict[Node, None] = {}
    for at, each in enumerate(fused.units):
        spare = {x for x in ending.get(at, ()) if x in own}
        if isinstance(each, Loop):
            placed = (fused.placed[x][0] for x in printed[each].gives if x in fused.placed)
            for stack in dict.fromkeys(placed):
                if stack not in begun:
                    yield from stack_lines(stack)
                    begun[stack] = None
            yield loop_line(each, printed[each], fused, spare)
        elif each.node in begun or each.node in fused.view.shifted:
            pass
        elif name_of(each.node) == "select.int" and each.node.args[1] == -1:
            yield from component_lines(each.node, begun)
        else:
            yield f"{each.node.name} = {called(each.node, spare)}"
        ends = [node.name for node in ending.get(at, ()) if node.op != "placeholder"]
        if ends:
            yield f"del {', '.join(ends)}"


def owned(fused: Fused, printed: dict[Loop, Printed]) -> set[Node]:
    """The values in memory of the sequence that no other value shares."""
    made = {node for each in printed.values() for node in each.gives}
    made |= {u.node for u in fused.units if isinstance(u, KernelCall) and name_of(u.node) in FRESH}
    return {
        x for x in made if all(u in fused.view.points or name_of(u) in FRESH for u in x.users)
    }  # fmt: skip


def stack_lines(node: Node) -> Iterator[str]:
    """Memory for a value whose components loops store one by one, and each of them."""
    value = node.meta["val"]
    sizes = listed(map(size, value.shape))
    yield f"{node.name} = torch.empty({sizes}, dtype={value.dtype}, device=device)"
    yield f"{node.name}_parts = {node.name}.unbind()"


def component_lines(node: Node, begun: dict[Node, None]) -> Iterator[str]:
    """One of the components of a value, all of which are taken at once."""
    source, number = node.all_input_nodes[0], node.args[2]
    if source not in begun:
        begun[source] = None
        yield f"{source.name}_parts = {source.name}.unbind(-1)"
    yield f"{node.name} = {source.name}_parts[{number}]"


def loop_line(loop: Loop, each: Printed, fused: Fused, own: set[Node]) -> str:
    """The call of a kernel; its results take the place of operands that nothing else needs.

    own: the operands that no unit after it reads, and whose memory is the sequence's
    """
    far = {fused.view.base(x) for x in each.tensors if x in fused.view.shifted}
    fitting = [x for x in each.tensors if x in own and sizes_of(x) == loop.shape]
    spare = [x for x in fitting if x not in far]
    into = []
    for node in each.gives:
        if node in fused.placed:
            stack, number = fused.placed[node]
            into.append(f"{stack.name}_parts[{number}]")
            continue
        kind, end = node.meta["val"].dtype, each.last[node]
        fit = (x for x in spare if x.meta["val"].dtype == kind and each.last[x] <= end)
        found = next(fit, None)
        if found is not None:
            spare.remove(found)
        into.append("None" if found is None else found.name)
    shape = loop.nodes[0].meta["val"].shape
    parts = [listed(map(size, shape)), listed(into), listed(map(text, each.numbers)),
             listed(fused.view.base(x).name for x in each.tensors)]  # fmt: skip
    return f"{listed(node.name for node in each.gives)} = {each.loop.name}({', '.join(parts)})"


def listed(words: Iterable[str]) -> str:
    return f"({''.join(f'{word}, ' for word in words)})"


def size(value: Any) -> str:
    """A size: a number, or the name of the axis that it is that of."""
    if isinstance(value, int):
        return str(value)
    return next(name for name, traced in TRACED.items() if traced == hint_of(value))


def called(node: Node, own: set[Node]) -> str:
    """A call of torch as text.

    own: the arguments that no unit after it reads, and whose memory is the sequence's
    """
    if node.op == "get_attr":
        return f"constants[{str(node.target)!r}]"
    arguments = [text(each) for each in node.args]
    arguments += [f"{name}={text(each)}" for name, each in node.kwargs.items()]
    name, target = name_of(node), str(node.target)
    if name == "_fft_c2r.default" and not node.kwargs:
        return f"real_field({', '.join(arguments)}, {node.args[0] in own})"
    if name in METHODS:
        return f"{arguments[0]}.{METHODS[name]}({', '.join(arguments[1:])})"
    if isinstance(node.target, OpOverload):
        target = f"torch.ops.{RENAMED.get(target, target)}"
    elif node.target in (torch.real, torch.imag):
        target = f"torch.{name}"
    else:
        target = f"{getattr(node.target, '__module__', '').lstrip('_')}.{name}"
    return f"{target}({', '.join(arguments)})"


def text(value: Any) -> str:
    """An argument as text."""
    match value:
        case Node():
            return value.name
        case tuple() | list():
            inner = "".join(f"{text(each)}, " for each in value)
            return f"[{inner}]" if isinstance(value, list) else f"({inner})"
        case torch.device():
            return f"torch.device({str(value)!r})"
        case _:
            return repr(value)
