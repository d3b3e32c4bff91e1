"""`AOTIModel`: a compiled package as a model of an input file, and a stub as an artifact."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch

from ingot.errors import IngotError, Problem
from ingot.package.metadata import Metadata
from ingot.package.target import Backend
from ingot.runtime.artifact import Artifact
from ingot.types import KINDS

if TYPE_CHECKING:
    from ingot.hit import Block, Tree
    from ingot.model import Factory, Model

__all__ = [
    "AOTIModel", "from_stub", "package_of", "require_stub", "stub_block", "under_rules",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class AOTIModel:
    """A model that was compiled before.

    artifact_path: the package's folder, relative to the file; solver: rules that act at load
    """

    artifact: Artifact

    @staticmethod
    def build(block: "Block", factory: "Factory") -> "Model":
        """The package as a model with its inputs and outputs."""
        from ingot.model import Model

        artifact = _loaded(block, factory, "cpu", None)
        inputs = {v.name: KINDS[v.kind] for v in artifact.metadata.inputs}
        outputs = {v.name: KINDS[v.kind] for v in artifact.metadata.outputs}
        return Model(block.name, "AOTIModel", block.span, inputs, outputs, AOTIModel(artifact))


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
    file: Path, *, device: str, dtype: torch.dtype | None, backend: Backend | None = None
) -> Artifact:
    """The artifact that a stub's only model stands for."""
    from ingot.hit import read
    from ingot.model import Factory

    tree = read(file)
    return _loaded(require_stub(tree), Factory(tree), device, dtype, backend)


def under_rules(meta: Metadata, block: "Block", factory: "Factory") -> Metadata:
    """Metadata with the solver's rules that a stub gives."""
    from ingot.program.combinators import newton_of

    solver = block.field("solver")
    if solver is None:
        return meta
    rules = newton_of(factory, solver).rules()
    solvers = tuple(msgspec.structs.replace(s, **rules) for s in meta.solvers)
    return msgspec.structs.replace(meta, solvers=solvers)


def _loaded(
    block: "Block", factory: "Factory", device: str, dtype: torch.dtype | None,
    backend: Backend | None = None,
) -> Artifact:  # fmt: skip
    from ingot.program.combinators import check_fields
    from ingot.runtime.load import load

    check_fields(block, ("artifact_path", "solver"))
    place = package_of(block, factory.tree)
    message = f"[{block.path}] is a compiled package, whose native code is not run: '{place}'"
    factory.refuse_untrusted(message, block.span)
    artifact = load(place, device=device, dtype=dtype, backend=backend)
    return artifact.with_rules(under_rules(artifact.metadata, block, factory))
