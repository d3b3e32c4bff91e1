"""A model on its way to a package: one flat value that the seven stages fill, field by field."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ingot.hit import Tree
from ingot.model import Model
from ingot.model.settings import Settings
from ingot.options import Device
from ingot.package.metadata import Metadata
from ingot.package.target import Target
from ingot.program import Program
from ingot.program.partition import Segment
from ingot.types import Value
from ingot.types.spellings import Spellings

if TYPE_CHECKING:
    from ingot.execute.inductor import GraphPlan

__all__ = ["Compilation", "Names", "Shapes"]

Shapes = Mapping[str, tuple[int, ...]]
Names = Mapping[str, str]
"""Names of the file, each with the one that the package shows instead, most often the same."""

_LATER: Any = None  # a later stage gives the value, and nothing reads it before


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """What is known of a package so far; `describe` prints the fields of a stage.

    load: the live model, what it is compiled for, which of those devices is the next, and where all
    come from: the file with its settings (none for a model built in Python), a driver and the
    extents that its values show
    select: the parameters that stay open, with copies of their values; what they were called, and
    all names of all parameters
    route: inputs, promoted parameters and outputs under their names outside, in the order of every
    call; the derivative pairs in these names
    freeze: copies of the other values: constants of the code, and batched ones, which are passed
    shape: the program, traced on structural axes whose extents are all known
    partition: its segments in the order they run; the programs that also give derivatives: blocks
    of the pairs, and adjoints where they are asked for
    lower: what is printed and translated: kernels and their sources, graphs, and the metadata
    """

    model: Model
    target: Target
    device: Device = "cpu"
    tree: Tree | None = None
    settings: Settings = field(default_factory=Settings)
    driver: str | None = None
    driven: Shapes = field(default_factory=dict)
    command: str = ""

    promoted: Mapping[str, Value] = _LATER
    parameters: Names = _LATER
    spellings: Spellings = _LATER

    inputs: Names = _LATER
    outputs: Names = _LATER
    pairs: tuple[tuple[str, str], ...] = ()

    constants: Mapping[str, Value] = _LATER
    batched: Mapping[str, Value] = _LATER

    program: Program = _LATER

    segments: tuple[Segment, ...] = ()
    slopes: Program = _LATER
    adjoint: Program | None = None

    kernels: Mapping[str, Program] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    graphs: "GraphPlan | None" = None
    metadata: Metadata = _LATER
