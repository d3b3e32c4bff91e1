"""`AOTIModel`: a compiled package as a model of an input file, and a stub as an artifact."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import msgspec
import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.execute.devices import require_device
from ingot.execute.status import Status
from ingot.messages import refuse, tell
from ingot.options import Newton, PackagedBackend, Precision, find_no_choice
from ingot.package.metadata import Metadata, SolverInfo, VariableInfo
from ingot.runtime.artifact import Artifact
from ingot.types import KINDS, lag

if TYPE_CHECKING:
    from ingot.hit import Block, Field, Tree
    from ingot.model import Factory, Model
    from ingot.program.layouts import Layout
    from ingot.program.tracer import Placed, Tracer

__all__ = [
    "AOTIModel", "find_other_program", "load_model", "package_of", "require_stub", "stub_block",
    "under_rules",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class AOTIModel:
    """A model that was compiled before.

    artifact_path: the package's folder, relative to the file; solvers: rules that act at load, as
    update:solver for each; solver: one for all; program: what the package computes, as a hash, or
    several of which it may be one; others are refused
    """

    artifact: Artifact
    load: Callable[[PackagedBackend], Artifact]
    """The same package by another backend that it holds."""

    @staticmethod
    def build(block: "Block", factory: "Factory") -> "Model":
        """The package as a model with its inputs and outputs."""
        from ingot.model import Model

        artifact = _loaded(block, factory, factory.device, None)
        inputs = {v.name: KINDS[v.kind] for v in artifact.metadata.inputs}
        outputs = {v.name: KINDS[v.kind] for v in artifact.metadata.outputs}
        body = AOTIModel(artifact, partial(_loaded, block, factory, factory.device, None))
        return Model(block.name, "AOTIModel", block.span, inputs, outputs, body)

    def emit(
        self, model: "Model", values: "Mapping[str, Placed]", tracer: "Tracer"
    ) -> "dict[str, Placed]":
        """A call of the package, for all points at once, as an opaque function."""
        from ingot.program.opaque import Port

        meta = self.artifact.metadata
        if meta.cuts:
            told = f"[{model.name}] is a package that sums over points, and here it is a part"
            fix = "put its source model in its place"
            raise IngotError([Problem("batch-reduction", told, model.span, fix)])
        own = {v.name: _own_axes(v, model, tracer) for v in (*meta.inputs, *meta.outputs)}
        files = []
        for v in meta.inputs:
            axes = values[v.name].axes
            cut = max(len(axes) - len(own[v.name]), 0)
            tracer.layouts.join([axes[cut:], own[v.name]], f"[{model.name}]")
            files.append(axes[:cut])
        shared = tracer.layouts.join(files, f"[{model.name}]")

        def port(v: VariableInfo) -> Port:
            return Port(v.name, KINDS[v.kind], (*shared, *own[v.name]))

        given = [(port(v), values[v.name]) for v in meta.inputs]
        gives = [port(v) for v in meta.outputs]
        return tracer.opaque(model, _PackageCall(self.artifact), given, gives, len(shared))


@dataclass(frozen=True)
class _PackageCall:
    """A package as a function of whole tensors."""

    what: ClassVar[str] = "a compiled package, which has no lines to give"
    instead: ClassVar[str] = (
        "ingot run calls it between compiled parts; to compile it, put its source model in its"
        " place"
    )

    artifact: Artifact

    @property
    def digest(self) -> str:
        """The seal of the package, and the rules it runs under."""
        meta = self.artifact.metadata
        return repr((meta.seal, meta.solvers))

    @property
    def solves(self) -> Mapping[str, SolverInfo]:
        """The implicit updates of the package."""
        return {s.name: s for s in self.artifact.metadata.solvers}

    def report(self, name: str, points: int) -> Sequence[Status]:
        """What its updates reported, of entries on axes around it the worst for each point."""
        found = []
        for status in self.artifact.status:
            worst = status.reason.reshape(points, -1).argmax(1, keepdim=True)
            rows = ("reason", "iterations", "residual", "pivoted", "accepted")
            each = {
                row: getattr(status, row).reshape(points, -1).gather(1, worst)[:, 0] for row in rows
            }
            found.append(replace(status, solve=f"{name}.{status.solve}", **each))
        return found

    def __call__(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        """The outputs, in the precision of the package."""
        # promoted parameters always require gradients, and here nobody asks for them
        asked = torch.is_grad_enabled() and any(x.requires_grad for x in inputs)
        with torch.set_grad_enabled(asked):
            return list(self.artifact(self._named(inputs)).values())

    def push(
        self, inputs: Sequence[Tensor], tangents: Sequence[Tensor | None]
    ) -> Sequence[Tensor | None]:
        """The compiled blocks times tangents; None where one was not compiled."""
        pairs = zip(self.artifact.inputs, tangents, strict=True)
        along = {n: self._own(x) for n, x in pairs if x is not None}
        outputs = [
            y for y in self.artifact.outputs if not self._missing((y, x) for x in along)
        ]  # fmt: skip
        if not outputs:
            return [None] * len(self.artifact.outputs)
        found = self.artifact.jvp(self._named(inputs), along)
        return [self._like(found.get(y), inputs) for y in self.artifact.outputs]

    def pull(
        self, inputs: Sequence[Tensor], bars: Sequence[Tensor | None]
    ) -> Sequence[Tensor | None]:
        """The transposed blocks times adjoints; None where one was not compiled."""
        pairs = zip(self.artifact.outputs, bars, strict=True)
        along = {n: self._own(x) for n, x in pairs if x is not None}
        if all(self._missing((y, x) for y in along) for x in self.artifact.inputs):
            return [None] * len(self.artifact.inputs)
        found = self.artifact.vjp(self._named(inputs), along)
        return [self._like(found.get(x), inputs) for x in self.artifact.inputs]

    def refuse(self, pairs: Sequence[tuple[str, str]]) -> IngotError:
        """The error that names what was not compiled."""
        missing = self._missing(pairs)
        name = self.artifact.metadata.name
        told = ", ".join(f"{y}:{x}" for y, x in missing)
        return IngotError([Problem(
            "no-derivatives", f"the package '{name}' was compiled without the derivative {told}",
            None, f"compile it with {' '.join(f'-d {y}:{x}' for y, x in missing)}",
        )])  # fmt: skip

    def _missing(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        known = {(b.output, b.input) for b in self.artifact.metadata.derivatives}
        return [pair for pair in pairs if pair not in known]

    def _named(self, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        return {n: self._own(x) for n, x in zip(self.artifact.inputs, inputs, strict=True)}

    def _own(self, x: Tensor) -> Tensor:
        return x.to(self.artifact.dtype)

    def _like(self, x: Tensor | None, inputs: Sequence[Tensor]) -> Tensor | None:
        return None if x is None else x.to(inputs[0].dtype)


def _own_axes(variable: VariableInfo, model: "Model", tracer: "Tracer") -> "Layout":
    """The axes of a package's variable, which have sizes there and take their names here."""
    return tracer.layouts.of(f"{lag(variable.name)[0]} of [{model.name}]", variable.sub_batch)


def stub_block(tree: "Tree") -> "Block | None":
    """The only model of a stub; none where the file holds other models, or several."""
    blocks = [block for part in tree.section("Models") for block in part.blocks]
    return blocks[0] if len(blocks) == 1 and blocks[0].type == "AOTIModel" else None


def require_stub(tree: "Tree") -> "Block":
    """The only model of a stub."""
    block = stub_block(tree)
    if block is None:
        raise refuse("no stub", file=tree.file)
    return block


def package_of(block: "Block", tree: "Tree") -> Path:
    """The folder that a stub's model names, relative to the stub."""
    path = Path(block.require("artifact_path").string())
    return path if path.is_absolute() or tree.file is None else tree.file.parent / path


def find_other_program(meta: Metadata, block: "Block") -> Iterator[Problem]:
    """A package that is not the one for which its stub was written, where the stub says which."""
    from ingot.runtime.loader import again_of

    field = block.field("program")
    if field is not None and meta.origin.program not in field.words():
        named = {"name": meta.name, "device": meta.device, "again": again_of(meta)}
        yield tell("other program", field.span, **named)


def load_model(
    file: Path, name: str | None, *, device: str, dtype: torch.dtype | None,
    backend: PackagedBackend | None = None,
) -> "Artifact | Model":  # fmt: skip
    """The artifact of a stub; of any file the model so named, which is an artifact or lives."""
    from ingot.hit import read
    from ingot.model import Factory

    tree = read(file)
    factory = Factory(tree)
    factory.device = device  # of packages that are parts of a live model
    names = tree.names("Models")
    if name is None and stub_block(tree) is None:
        message = f"{file} is no stub, and which of its models is meant is not said"
        fix = f"give name=, one of: {', '.join(names)}" if names else "give a file with [Models]"
        raise IngotError([Problem("which-model", message, None, fix)])
    block = tree.require("Models", names[0] if name is None else name)
    if block.type == "AOTIModel":
        return _loaded(block, factory, device, dtype, backend)
    if backend is not None:
        message = f"[{block.path}] is a live model, which no backend was compiled for"
        fix = f"give ingot.compile(ingot.load(file, name='{block.name}'), backend='{backend}')"
        raise IngotError([Problem("wrong-backend", message, block.span, fix)])
    place = require_device(device, "load it for the CPU: device='cpu'")
    if dtype is not None:
        word = str(dtype).removeprefix("torch.")
        raise_if(find_no_choice("dtype", word, get_args(Precision)))
        dtype = getattr(torch, word)
    model = factory.model(block.name)
    model.shapes = factory.settings.extents(model)
    return model.to(device=place, dtype=dtype)


def under_rules(meta: Metadata, block: "Block", factory: "Factory") -> Metadata:
    """Metadata with the rules that a stub gives to its updates, or one solver's to all of them."""
    from ingot.program.combinators import read_newton

    one, each = block.field("solver"), block.field("solvers")
    updates = dict.fromkeys(s.name for s in meta.solvers)
    chosen: dict[str, Newton] = {}
    named: dict[str, Any] = {}
    if one is not None and each is not None:
        raise refuse("two ways", one.span)
    if one is not None:
        chosen = dict.fromkeys(updates, read_newton(factory, one))
    for word in each.words() if each is not None else ():
        assert each is not None
        update, solver = _pair(each, word, updates, chosen)
        chosen[update] = read_newton(factory, solver)
        named[update] = factory.record(factory.block_of(solver, "Solvers"))
    if each is not None:
        factory.note(each, named)
    solvers = tuple(
        msgspec.structs.replace(s, **chosen[s.name].rules()) if s.name in chosen else s
        for s in meta.solvers
    )
    return msgspec.structs.replace(meta, solvers=solvers)


def _pair(
    field: "Field", word: str, updates: Collection[str], known: Collection[str]
) -> tuple[str, "Field"]:
    """An update that has no rules yet and its solver, of a word `update:solver`."""
    from ingot.hit.tree import word_span

    span = word_span(field.value_span, word)
    # Either name may hold a colon itself: the longest update that fits is meant.
    fits = [u for u in updates if word.startswith(f"{u}:")]
    update = max(fits, key=len) if fits else word.partition(":")[0]
    solver = word[len(update) + 1 :]
    if not solver:
        raise field.wrong("pairs such as update:newton", word)
    if update not in updates:
        fix = did_you_mean(update, updates) or f"its updates are: {', '.join(updates) or 'none'}"
        raise refuse("unknown update", span, name=update, fix=fix)
    if update in known:
        raise refuse("two solvers", span, name=update)
    return update, replace(field, text=solver, span=span)


def _loaded(
    block: "Block", factory: "Factory", device: str, dtype: torch.dtype | None,
    backend: PackagedBackend | None = None,
) -> Artifact:  # fmt: skip
    from ingot.program.combinators import check_fields
    from ingot.runtime.loader import load

    check_fields(block, ("artifact_path", "solver", "solvers", "program"))
    place = package_of(block, factory.tree)
    factory.note(block.require("artifact_path"), place.resolve())
    message = f"[{block.path}] is a compiled package, whose native code is not run: '{place}'"
    factory.refuse_untrusted(message, block.span)
    artifact = load(place, device=device, dtype=dtype, backend=backend)
    raise_if(find_other_program(artifact.metadata, block))
    return artifact.with_rules(under_rules(artifact.metadata, block, factory))
