"""`AOTIModel`: a compiled package as a model of an input file, and a stub as an artifact."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch

from ingot.errors import IngotError, Problem
from ingot.package.target import Backend
from ingot.runtime.artifact import Artifact
from ingot.types import KINDS

if TYPE_CHECKING:
    from ingot.hit import Block
    from ingot.model import Factory, Model

__all__ = ["AOTIModel", "from_stub"]


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


def from_stub(
    file: Path, *, device: str, dtype: torch.dtype | None, backend: Backend | None = None
) -> Artifact:
    """The artifact that a stub's only model stands for."""
    from ingot.hit import read
    from ingot.model import Factory

    tree = read(file)
    blocks = [b for part in tree.section("Models") for b in part.blocks if b.type == "AOTIModel"]
    if len(blocks) != 1:
        raise IngotError([Problem(
            "no-stub", f"{file} holds {len(blocks)} models of type AOTIModel", None,
            "load the package's folder instead",
        )])  # fmt: skip
    return _loaded(blocks[0], Factory(tree), device, dtype, backend)


def _loaded(
    block: "Block", factory: "Factory", device: str, dtype: torch.dtype | None,
    backend: Backend | None = None,
) -> Artifact:  # fmt: skip
    from ingot.program.combinators import check_fields, newton_of
    from ingot.runtime.load import load

    check_fields(block, ("artifact_path", "solver"))
    path = Path(block.require("artifact_path").string())
    file = factory.tree.file
    place = path if path.is_absolute() or file is None else file.parent / path
    artifact = load(place, device=device, dtype=dtype, backend=backend)
    solver = block.field("solver")
    if solver is None:
        return artifact
    rules = newton_of(factory, solver)
    known = {f.name: getattr(rules, f.name) for f in fields(rules)}
    solvers = tuple(msgspec.structs.replace(s, **known) for s in artifact.metadata.solvers)
    return artifact.with_rules(msgspec.structs.replace(artifact.metadata, solvers=solvers))
