"""`AOTIModel`: a compiled package as a model of an input file, and a stub as an artifact."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec
import torch

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.options import Newton, PackagedBackend
from ingot.package.metadata import Metadata
from ingot.runtime.artifact import Artifact
from ingot.types import KINDS

if TYPE_CHECKING:
    from ingot.hit import Block, Field, Tree
    from ingot.model import Factory, Model

__all__ = [
    "AOTIModel", "from_stub", "package_of", "require_stub", "stub_block", "under_rules",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class AOTIModel:
    """A model that was compiled before.

    artifact_path: the package's folder, relative to the file; solvers: rules that act at load, as
    update:solver for each; solver: one for all
    """

    artifact: Artifact
    load: Callable[[PackagedBackend], Artifact]
    """The same package by another backend that it holds."""

    @staticmethod
    def build(block: "Block", factory: "Factory") -> "Model":
        """The package as a model with its inputs and outputs."""
        from ingot.model import Model

        artifact = _loaded(block, factory, "cpu", None)
        inputs = {v.name: KINDS[v.kind] for v in artifact.metadata.inputs}
        outputs = {v.name: KINDS[v.kind] for v in artifact.metadata.outputs}
        body = AOTIModel(artifact, partial(_loaded, block, factory, "cpu", None))
        return Model(block.name, "AOTIModel", block.span, inputs, outputs, body)

    def emit(self, model: "Model", *_: object) -> NoReturn:
        """Refuse to be part of a program: a package has no lines to give."""
        raise IngotError([Problem(
            "compiled-model",
            f"[{model.name}] is a compiled package, which runs by itself only: by a driver of its"
            " own or by ingot.load; it cannot be traced, nor be part of another model",
            model.span, "compile the whole composition from the source file instead",
        )])  # fmt: skip


def stub_block(tree: "Tree") -> "Block | None":
    """The only model of a stub; none where the file holds other models, or several."""
    blocks = [block for part in tree.section("Models") for block in part.blocks]
    return blocks[0] if len(blocks) == 1 and blocks[0].type == "AOTIModel" else None


def require_stub(tree: "Tree") -> "Block":
    """The only model of a stub."""
    block = stub_block(tree)
    if block is None:
        raise IngotError([Problem(
            "no-stub",
            f"{tree.file} is no stub: it does not hold one model of type AOTIModel alone", None,
            "name the package's folder, or the stub that was written beside it",
        )])  # fmt: skip
    return block


def package_of(block: "Block", tree: "Tree") -> Path:
    """The folder that a stub's model names, relative to the stub."""
    path = Path(block.require("artifact_path").string())
    return path if path.is_absolute() or tree.file is None else tree.file.parent / path


def from_stub(
    file: Path, *, device: str, dtype: torch.dtype | None, backend: PackagedBackend | None = None
) -> Artifact:
    """The artifact that a stub's only model stands for."""
    from ingot.hit import read
    from ingot.model import Factory

    tree = read(file)
    return _loaded(require_stub(tree), Factory(tree), device, dtype, backend)


def under_rules(meta: Metadata, block: "Block", factory: "Factory") -> Metadata:
    """Metadata with the rules that a stub gives to its updates, or one solver's to all of them."""
    from ingot.program.combinators import newton_of

    one, each = block.field("solver"), block.field("solvers")
    updates = dict.fromkeys(s.name for s in meta.solvers)
    chosen: dict[str, Newton] = {}
    if one is not None and each is not None:
        message = "'solver' is for all updates, 'solvers' says which is whose"
        raise IngotError([Problem("wrong-value", message, one.span, "keep one of the two")])
    if one is not None:
        chosen = dict.fromkeys(updates, newton_of(factory, one))
    for word in each.words() if each is not None else ():
        assert each is not None
        update, solver = _pair(each, word, updates, chosen)
        chosen[update] = newton_of(factory, solver)
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
        message = f"the package has no update '{update}'"
        fix = did_you_mean(update, updates) or f"its updates are: {', '.join(updates) or 'none'}"
        raise IngotError([Problem("unknown-update", message, span, fix)])
    if update in known:
        message = f"'solvers' names two solvers for '{update}'"
        raise IngotError([Problem("wrong-value", message, span, "keep one of the two")])
    return update, replace(field, text=solver, span=span)


def _loaded(
    block: "Block", factory: "Factory", device: str, dtype: torch.dtype | None,
    backend: PackagedBackend | None = None,
) -> Artifact:  # fmt: skip
    from ingot.program.combinators import check_fields
    from ingot.runtime.loader import load

    check_fields(block, ("artifact_path", "solver", "solvers"))
    place = package_of(block, factory.tree)
    message = f"[{block.path}] is a compiled package, whose native code is not run: '{place}'"
    factory.refuse_untrusted(message, block.span)
    artifact = load(place, device=device, dtype=dtype, backend=backend)
    return artifact.with_rules(under_rules(artifact.metadata, block, factory))
