"""A function or module and an example of its arguments -> Captured: the graph that Dynamo traces.

Every tensor it reads is an input, every number it took is listed, and the source is left as it was.
"""

import inspect
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torch.fx.graph import CodeGen

from ingot.errors import IngotError, Problem, Span, raise_if
from ingot.graphs.guards import Course, find_guards, find_inplace
from ingot.graphs.layout import blank, order_of
from ingot.graphs.sizes import Dynamic, Open, find_fixed, open_sizes
from ingot.graphs.spans import find_definition, find_layer, find_span_in, find_use, placed
from ingot.graphs.torch_private import (
    Frame,
    autocast_now,
    buffers_of,
    free_convolutions,
    mark_open,
    silence_fakes,
    sources_of_sizes,
    stack_of_error,
    stacks_of_sizes,
    trace_frame,
    uncompiled,
)
from ingot.graphs.tree import PLAIN, Tree, flatten, has_order, reorder, set_free, unflatten

__all__ = [
    "Captured", "Leaf", "capture", "find_fix", "find_tensors",
]  # fmt: skip

# what Dynamo's guards ask of torch itself rather than of the user's module and configuration
_OWN = re.compile(
    r"__import_torch\b|__import_torch_dot_|__builtins|__dict__|__mro__|__code__|_hooks"
)
_MODULE = re.compile(r"G\['__import_(\w+)'\]")
_TABLE = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]")
_CLOSURE = re.compile(r"^(.*?)\.__closure__\[(\d+)\]\.cell_contents")
_KEYS = re.compile(r"\[list\(dict\.keys\(.*?\)\)\[(\d+)\]\]")
_DICT = re.compile(r"\.__dict__\['(\w+)'\]")
_ROOT = "L['source']"
_FIX = "use tensor operations whose course does not depend on values"
_BY_VALUE = "[Dd]ata-dependent"
_AVERAGES = "give BatchNorm a momentum, as 0.1: without one it asks how many batches it has seen"
_FIXES = (
    ("leaf Variable that requires grad", "write to a clone of it: x = x.clone()"),
    ("[Bb]ackwards hooks", "set a hook on a tensor, y.register_hook(hook), or on the joint itself"),
    ("as_proxy", "give operations tensors and plain values, and no generator"),
    (_BY_VALUE, "use torch.where, masks or torch.cond in the place of the branch"),
    (
        r"builtin operator|marked as skipped|print|logging",
        "do outside of it what is no operation on tensors: printing, files, other libraries",
    ),
    (
        r"got \w+Error\(|failed to find name|running in eager",
        "call it once without compiling, and see that it runs",
    ),
)
"""What torch says of what it cannot trace, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a placeholder of the graph, or a leaf of the result, stands for.

    kind: a tensor "held" by the module (`name` is its first qualified name), a leaf "argument"
    (`index` counts those of the arguments), a "constant" tensor of a closure or a global (`name` is
    where it was found), a "size" (`value` is its expression in the open sizes), an "output" of the
    graph (`index` counts them), or a plain "value".
    """

    kind: Literal["held", "argument", "constant", "size", "output", "value"]
    name: str = ""
    index: int = -1
    value: Any = None


@dataclass(frozen=True, slots=True)
class Captured:
    """A graph of torch's functions whose nodes keep `nn_module_stack` and `stack_trace`.

    arguments: the leaves of (positional, keyword), each with its name; axes: their open sizes;
    leaves and tree: the result; written: attributes that the call binds to outputs of the graph,
    and where; place: where the function begins;
    open: the example's number for each open size; guards: what was assumed of them, as text;
    constants: numbers and words that were taken from attributes, closures and globals;
    names: all globals and attributes that the code may have asked for;
    asks_grad: whether the code asked if gradients are recorded, which was `grad`;
    unnamed: what `**kwargs` takes, where its order matters;
    causes: of guards, what decided by the size, and where.
    """

    name: str
    graph: GraphModule
    inputs: tuple[Leaf, ...]
    leaves: tuple[Leaf, ...]
    tree: Tree
    open: dict[str, int]
    grad: bool
    autocast: dict[str, str]
    arguments: tuple[tuple[str, Any], ...] = ()
    axes: tuple[dict[int, str], ...] = ()
    takes: Tree = Tree()  # noqa: RUF009 it is frozen
    written: tuple[tuple[str, int, Span | None], ...] = ()
    place: Span | None = None
    constants: dict[str, Any] = field(default_factory=dict)
    guards: tuple[str, ...] = ()
    training: bool | None = None
    names: frozenset[str] = frozenset()
    causes: dict[str, str] = field(default_factory=dict)
    asks_grad: bool = False
    unnamed: tuple[str, ...] = ()


def capture(
    source: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Dynamic = None,
    names: Sequence[str] = (),
    one_of_several: bool = False,
    unnamed: Sequence[str] = (),
) -> Captured:
    """Trace a function or module by Dynamo, whole; `names` are those of positional arguments.

    `unnamed` are those that `**kwargs` takes.
    """
    kwargs = dict(kwargs or {})
    _, takes = flatten((tuple(args), kwargs))
    known = [*names, *(f"argument{i}" for i in range(len(names), len(args)))]
    # the name of each argument, and where Dynamo finds it
    given = [
        (name, f"L['values'][{i}]", x) for i, (name, x) in enumerate(zip(known, args, strict=False))
    ]
    given += [(name, f"L['named'][{name!r}]", x) for name, x in kwargs.items()]
    leaves = [
        (name + path, place + path, leaf)
        for name, place, value in given
        for path, leaf in flatten(value)[0]
    ]
    arguments = tuple((name, leaf) for name, _, leaf in leaves)
    tensors = [(n, x) for n, x in arguments if isinstance(x, Tensor)]
    chosen, hints, bounds = open_sizes(dynamic, tensors, one_of_several)
    rest = iter(chosen)
    axes = tuple(next(rest) if isinstance(leaf, Tensor) else {} for _, leaf in arguments)
    size_names = {
        f"{place}.size()[{axis}]": size
        for (_, place, _), opened in zip(leaves, axes, strict=True)
        for axis, size in opened.items()
    }
    source = uncompiled(source)
    module = source if isinstance(source, nn.Module) else None
    name = type(source).__name__ if module else getattr(source, "__name__", "function")

    def make_examples(fixed: Mapping[str, int]) -> list[Any]:
        return [_example(x, opened, fixed) for (_, x), opened in zip(arguments, axes, strict=True)]

    examples = make_examples({})
    given = unflatten(takes, examples)
    frame = _trace(name, source, given)
    raise_if(_find_subclasses(frame))
    written = _find_written(name, module, frame)
    copied: list[str] = []
    place = find_definition(source)
    with placed(place):
        if written:
            frame = _trace(name, source, given, written)
            copied = _find_copied(name, module, frame, written, examples)
        if copied:
            frame = _trace(name, source, given, written, copied)
        result, bound, _ = _run(frame)
    course = Course(frame, _open(name, frame, size_names, hints))

    def follow(given: Any, sizes: Mapping[str, int]) -> Course:
        other = _trace(name, source, given, written, copied)
        return Course(other, _open(name, other, size_names, sizes))

    guards, causes = find_guards(
        course, lambda fixed: follow(unflatten(takes, make_examples(fixed)), {**hints, **fixed})
    )

    def is_free() -> bool:
        """Whether all is the same with dicts turned round, and with the first entry last."""
        for turn in (lambda x: x[::-1], lambda x: x[1:] + x[:1]):
            try:
                other = follow(reorder(given, turn), hints)
            except IngotError:
                return False
            if not other.is_like(course) or _marks(other.frame) != _marks(frame):
                return False
        return True

    ordered = len(unnamed) > 1 or any(has_order(c) for h in takes.children for c in h.children)
    free = ordered and is_free()
    whose = _Tensors(module, examples)
    places = zip(frame.graph.graph.find_nodes(op="placeholder"), frame.given, strict=True)
    nested, tree = flatten(result)
    new = zip(written, bound, strict=True)
    return Captured(
        name=name, arguments=arguments, axes=axes, takes=set_free(takes) if free else takes,
        inputs=tuple(whose.find_input(*each, course) for each in places),
        leaves=tuple(whose.find_leaf(name, place, *leaf) for leaf in nested), tree=tree,
        written=tuple(
            (n, stand.index, written[n]) for n, stand in new if isinstance(stand, _Stand)
        ),
        place=place, constants=_find_constants(frame), open=hints, guards=(*bounds, *guards),
        causes=causes, training=module.training if module else None,
        grad=torch.is_grad_enabled(), autocast=autocast_now(), graph=_clean(frame),
        names=frame.names, asks_grad=frame.asks_grad, unnamed=() if free else tuple(unnamed),
    )  # fmt: skip


_Written = tuple[tuple[list[str], bool], ...]


def _call(source: Any, values: tuple[Any, ...], named: dict[str, Any], written: _Written) -> Any:
    """What Dynamo traces: the call, what attributes are then, and a tensor: no graph is empty."""
    result = source(*values, **named)
    bound = []
    for words, is_copied in written:
        owner = source
        for word in words:  # Dynamo does not follow attrgetter
            owner = getattr(owner, word)
        bound.append(owner.clone() if is_copied else owner)
    return result, bound, torch.empty(0)


def _marks(frame: Frame) -> Any:
    """What a frame gives, to be compared with another of the same arguments."""
    leaves, tree = flatten(_run(frame)[:2])
    return tree, [_mark(x) if isinstance(x, _Stand | Tensor) else repr(x) for _, x in leaves]


def _run(frame: Frame) -> Any:
    return frame.run([_Stand(i) for i in range(len(frame.outputs))])


class _Stand:
    """Stands for an output of the graph while Dynamo's bytecode nests the outputs."""

    def __init__(self, index: int) -> None:
        self.index = index

    def as_subclass(self, kind: type) -> Any:
        """Refuse to become a tensor subclass, whose methods a graph cannot hold."""
        told = f"the result is a tensor subclass, {kind.__name__}"
        fix = "return a plain tensor, for example y.as_subclass(torch.Tensor)"
        raise IngotError([Problem("tensor-subclass", told, None, fix)])

    def item(self) -> Any:
        """Refuse to be a number, which a graph gives as a tensor."""
        told = "the result is a number that is computed from sizes, and no whole one"
        fix = "return the sizes and compute it outside, or return a tensor"
        raise IngotError([Problem("wrong-output", told, None, fix)])


def _example(leaf: Any, opened: Mapping[int, str], fixed: Mapping[str, int]) -> Any:
    """A tensor of the same layout with its open sizes marked; nobody reads its numbers."""
    if not isinstance(leaf, Tensor):
        return leaf
    if any(size in fixed for size in opened.values()):
        sizes = [fixed.get(opened.get(i, ""), n) for i, n in enumerate(leaf.shape)]
        made = blank(sizes, order_of(leaf), leaf.dtype, leaf.device)
    else:
        made = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device)
    for axis, size in opened.items():
        if size not in fixed:
            mark_open(made, axis)
    return made.requires_grad_(leaf.requires_grad)


def _trace(
    name: str, source: Any, given: Any, written: Iterable[str] = (), copied: Sequence[str] = ()
) -> Frame:
    """A call of (positional, keyword) arguments as Dynamo traces it."""
    words = tuple((n.split("."), n in copied) for n in written)
    try:
        with free_convolutions(), silence_fakes():
            return trace_frame(_call, (source, *given, words))
    except IngotError:
        raise
    except Exception as error:
        stack = "".join(traceback.format_list([*stack_of_error(error)]))
        span = find_span_in(stack) or find_definition(source)
        told = f"'{name}' cannot be traced: {_explain(error)}"
        fix = find_fix(str(error), stack, name, source)
        raise IngotError([Problem("untraceable-function", told, span, fix)]) from error


def find_fix(text: str, stack: str, name: str, source: Any = None) -> str:
    """What to write in the place of what torch could not trace, by what it says, and where."""
    if "failed to bind arguments" in text:
        takes = ", ".join(inspect.signature(getattr(source, "forward", source)).parameters)
        return f"{name}({takes}): give one tensor, a tuple of arguments, or a dict of named ones"
    layer = find_layer(stack) if re.search(_BY_VALUE, text) else ""
    if layer:
        told = f"leave it out, or write its formula with tensors: {layer} asks for values"
        return _AVERAGES if layer.startswith("batchnorm.py") else told
    return next((fix for words, fix in _FIXES if re.search(words, text)), _FIX)


def _explain(error: Exception) -> str:
    """Of what Dynamo says the reason, without its advice; of torch's own error that."""
    text = str(error).strip() or type(error).__name__
    first, *_ = text.splitlines()
    reason = re.search(r"^ *Explanation: (.*)$", text, re.MULTILINE)
    own = re.search(r"got (\w+Error\(.*\))$", reason[1]) if reason else None
    return own[1] if own else f"{first}: {reason[1]}" if reason else first


def _find_subclasses(frame: Frame) -> Iterator[Problem]:
    """Tensors that the graph reads and that are more than tensors."""
    places = frame.graph.graph.find_nodes(op="placeholder")
    for node, value in zip(places, frame.given, strict=True):
        if isinstance(value, Tensor) and type(value) not in (Tensor, nn.Parameter):
            where, kind = _told(frame, frame.sources[node]), type(value).__name__
            told = f"'{where}' is a tensor subclass, {kind}"
            fix = "replace it by a plain tensor before tracing"
            yield Problem("tensor-subclass", told, find_use(node), fix)


def _find_line(stack: Sequence[traceback.FrameSummary]) -> Span | None:
    """The innermost line of the user's code."""
    return find_span_in("".join(traceback.format_list([*stack])))


def find_tensors(module: nn.Module | None) -> list[tuple[tuple[str, ...], Tensor]]:
    """The parameters and buffers of a module, each once, under all its names."""
    groups: dict[int, tuple[list[str], Tensor]] = {}
    if module is not None:
        parameters = module.named_parameters(remove_duplicate=False)
        for name, value in [*parameters, *module.named_buffers(remove_duplicate=False)]:
            groups.setdefault(id(value), ([], value))[0].append(name)
    return [(tuple(names), value) for names, value in groups.values()]


def _find_written(name: str, module: nn.Module | None, frame: Frame) -> dict[str, Span | None]:
    """The attributes that a call binds to other tensors; what else it changes is refused."""
    written: dict[str, Span | None] = {}
    problems = []
    for change in frame.changes:
        source = _DICT.sub(r".\1", change.source)
        # a buffer that is bound anew is put there again
        if source.endswith("._non_persistent_buffers_set"):
            continue
        owner = _qualified(source.removesuffix("._buffers"))
        known, line = _find_module(module, owner), _find_line(change.stack)
        tensors, lost = [], [*change.names] or [""]
        if known is not None and source.endswith("._buffers"):
            tensors, lost = [*buffers_of(known)], []
        elif known is not None:
            tensors = [n for n in change.names if isinstance(vars(known).get(n), Tensor)]
            lost = [n for n in change.names if n not in tensors]
        written |= {f"{owner}.{n}".lstrip("."): line for n in tensors}
        problems += [
            Problem(
                "python-state",
                f"a call of '{name}' sets '{_told(frame, change.source, n)}', which a graph cannot",
                line, "keep it in a buffer of fixed shape, or return it",
            )
            for n in lost
        ]  # fmt: skip
    raise_if(problems)
    return written


def _find_copied(
    name: str, module: nn.Module | None, frame: Frame, written: Mapping[str, Span | None],
    examples: Sequence[Any],
) -> list[str]:  # fmt: skip
    """The attributes that a call binds to a tensor that is there already: they become copies.

    Refused where a copy is not as good: two attributes that are one tensor from then on or until
    then, and one that is written to in place, which would be written to in both.
    """
    result, bound, _ = _run(frame)
    now = {n: attrgetter(n)(module) for n in written}
    changed = {n: x for n, x in zip(written, bound, strict=True) if x is not now[n]}
    existing = {n: x for n, x in changed.items() if not isinstance(x, _Stand)}
    arguments = {id(x) for x in examples if isinstance(x, Tensor)}
    groups = find_tensors(module)
    tied = {id(x) for names, x in groups if len(names) > 1}
    known = {id(x) for x in now.values()}
    kept = known.union(id(x) for _, x in groups) - {id(now[n]) for n in changed}
    inplace = {id(frame.given[i]) for i in find_inplace(frame)}
    stands = [x for _, x in flatten(result)[0] if isinstance(x, _Stand)]
    uses = Counter(map(_mark, (*changed.values(), *stands)))
    problems = []
    for word, value in changed.items():
        mine, why = id(value) in arguments, ""
        another = id(value) in kept or id(value) not in known or uses[id(value)] > 1
        if id(now[word]) in tied:
            why = "anew, which has another name too"
        elif word in existing and not isinstance(value, Tensor):
            why = f"to a {type(value).__name__}"
        elif word in existing and not mine and another:
            why = "to a tensor that has another name too"
        elif id(now[word]) in inplace and (mine or uses[_mark(value)] > 1):
            why = "to a tensor that others have too, and writes to it in place at the next call"
        if why:
            told = f"a call of '{name}' binds '{word}' {why}; a graph cannot"
            fix = "bind it to a clone, or write to it with copy_()"
            problems.append(Problem("python-state", told, written[word], fix))
    raise_if(problems)
    return [*existing]


def _mark(value: Any) -> int:
    """What tells tensors apart: outputs of the graph, which have no tensor yet, by their place."""
    return -1 - value.index if isinstance(value, _Stand) else id(value)


def _told(frame: Frame, source: str, name: str = "") -> str:
    """Where Dynamo found something, as the user would write it."""

    def variable(match: re.Match[str]) -> str:
        code = getattr(frame.evaluate(match[1]), "__code__", None)
        return match[0] if code is None else f"{match[1]}.{code.co_freevars[int(match[2])]}"

    words = _TABLE.sub(r".\1", _KEYS.sub(r"[\1]", _CLOSURE.sub(variable, source)))
    words = _MODULE.sub(lambda m: m[1].replace("_dot_", "."), words)
    words = words.removeprefix(_ROOT).lstrip(".")
    return ".".join(w for w in (words, name) if w)


def _qualified(source: str) -> str | None:
    """The dotted name of what Dynamo found in the module, if it has one."""
    dotted = _TABLE.sub(r".\1", source)
    if not dotted.startswith(_ROOT):
        return None
    name = dotted.removeprefix(_ROOT).lstrip(".")
    return name if re.fullmatch(r"[\w.]*", name) else None


def _find_module(module: nn.Module | None, name: str | None) -> nn.Module | None:
    if module is None or name is None:
        return None
    try:
        return module.get_submodule(name)
    except AttributeError:
        return None


def _open(name: str, frame: Frame, size_names: Mapping[str, str], sizes: Mapping[str, int]) -> Open:
    """The open sizes of a frame by their names; refused where the trace has fixed one."""
    sources, stacks = sources_of_sizes(frame.mode), stacks_of_sizes(frame.mode)
    names = {s: size_names[x] for s, every in sources.items() for x in every if x in size_names}
    shapes = Open(sizes, (frame.mode, names))
    fixed = {
        told: _find_line(next((stacks[x] for x in sources[symbol] if x in stacks), ()))
        for told, symbol in shapes.tied().items()
    }
    raise_if(find_fixed(name, fixed))
    return shapes


def _find_constants(frame: Frame) -> dict[str, Any]:
    """The plain values of the user's objects that Dynamo guards, by where they were found."""
    found: dict[str, Any] = {}
    for source in sorted(frame.constants):
        if _OWN.search(source) or source.startswith(("L['values']", "L['named']", "L['written']")):
            continue
        value = frame.evaluate(source)
        if isinstance(value, PLAIN) and not source.endswith(".training"):
            found[_told(frame, source) or source] = value
    return found


class _Tensors:
    """Which tensor is whose: by identity, as Dynamo's bytecode passes them."""

    def __init__(self, module: nn.Module | None, examples: Sequence[Any]) -> None:
        self.module = module
        self.arguments = {id(x): i for i, x in enumerate(examples) if isinstance(x, Tensor)}
        self.held = {
            id(x): f"{path}.{name}".lstrip(".")
            for path, part in (module.named_modules() if module else ())
            for name, x in vars(part).items()
            if isinstance(x, Tensor)
        }
        self.held |= {id(tensor): names[0] for names, tensor in find_tensors(module)}
        self.names = {name: number for number, name in self.held.items()}

    def find_input(self, node: Node, value: Any, course: Course) -> Leaf:
        """What a placeholder stands for."""
        if not isinstance(value, Tensor):
            return Leaf("size", node.name, value=course.open.text(node.meta["example_value"]))
        if id(value) in self.arguments:
            return Leaf("argument", node.name, self.arguments[id(value)])
        if id(value) in self.held:
            return Leaf("held", self.held[id(value)], value=value)
        source = course.frame.sources[node]
        name = _qualified(source)
        owner, _, leaf = (name or "").rpartition(".")
        holder = _find_module(self.module, owner)
        if name and holder is not None and getattr(holder, leaf, None) is value:
            return Leaf("held", name, value=value)
        word = _told(course.frame, source)
        mine = self.names.setdefault(word, id(value)) == id(value)
        return Leaf("constant", word if mine else source, value=value)

    def find_leaf(self, name: str, place: Span | None, path: str, leaf: Any) -> Leaf:
        """What a leaf of the result is."""
        if isinstance(leaf, _Stand):
            return Leaf("output", index=leaf.index)
        if id(leaf) in self.arguments:
            return Leaf("argument", index=self.arguments[id(leaf)])
        if id(leaf) in self.held:
            return Leaf("held", name=self.held[id(leaf)])
        if type(leaf) in PLAIN:
            return Leaf("value", value=leaf)
        what = f"a {type(leaf).__name__}"
        fix = "return tensors, numbers, strings and None, in tuples, lists, dicts and dataclasses"
        if isinstance(leaf, Tensor):
            what = "a tensor that is no result: a global, or what .T, .mT, .H or .data make of one"
            fix = "return a clone, or call a function: x.transpose(0, 1), x.detach()"
        told = f"the result of '{name}' holds {what}" + (f" at {path}" if path else "")
        raise IngotError([Problem("wrong-output", told, place, fix)])


def _clean(frame: Frame) -> GraphModule:
    """The graph with plain code, its modules under the names the user knows."""
    graph = frame.graph.graph
    for node in graph.nodes:
        stack = node.meta.get("nn_module_stack") or {}
        # a module that is called again is written as its path, "@" and a number
        names = {key: _qualified(path.partition("@")[0]) for key, (path, _) in stack.items()}
        node.meta["nn_module_stack"] = {
            key: (path if names[key] is None else names[key], kind)
            for key, (path, kind) in stack.items()
        }
    if frame.outputs[-1].target is torch.empty:
        graph.output_node().args = (frame.outputs[:-1],)
        graph.eliminate_dead_code(is_impure_node=lambda n: n.target is not torch.empty)
    graph.set_codegen(CodeGen())
    frame.graph.recompile()
    return frame.graph
