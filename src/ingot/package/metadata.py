"""All that a loader needs to know of a package, as one JSON file."""

from typing import Literal

import msgspec

from ingot.execute.inductor_metadata import InductorDescription
from ingot.execute.segments_run import SegmentedInfo
from ingot.options import Device, Newton, Precision, Range
from ingot.package.seal import BLANK, Digest
from ingot.package.target import IN_PROCESS, spell_option

__all__ = [
    "FORMAT",
    "SCHEMA",
    "Block",
    "KernelFiles",
    "Metadata",
    "Number",
    "Origin",
    "ParameterInfo",
    "SegmentInfo",
    "SolverInfo",
    "VariableInfo",
    "json_schema",
]  # fmt: skip

FORMAT = "ingot"
SCHEMA = 4
"""The version of this layout; loaders refuse any other.

A field that is added later has a default and is left out where it has that (`omit_defaults`):
code carries a digest of the metadata, which must be the one that it had.
"""


class VariableInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An input or output: its kind, the sizes of its structural axes, its base shape."""

    name: str
    kind: str
    base: tuple[int, ...]
    sub_batch: tuple[int, ...]
    size: int


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor, row-major."""

    shape: tuple[int, ...]
    values: tuple[float, ...]


class ParameterInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A promoted parameter, or a batched constant that is passed at every call.

    spellings: other names that mean the parameter, in full: by paths through the source, by its
    option and by what NEML2 calls it; range: what its numbers may be, where a preset declares it
    """

    variable: VariableInfo
    value: Number
    spellings: tuple[str, ...] = ()
    range: Range | None = None


class SolverInfo(Newton, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An implicit update and the rules of its source file; a stub's `[Solvers]` may change them."""

    name: str
    unknowns: tuple[str, ...]


class SegmentInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stretch of the model: `forward`, `implicit` around one solve, or a sum over points."""

    kind: Literal["forward", "implicit", "reduction"]
    name: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A derivative block that was asked for."""

    output: str
    input: str
    batch_independent: bool


class KernelFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The kernel backend: one library for each CPU level, its source and header; for GPUs a cubin
    for each architecture, and PTX for newer ones, and no header.

    prefix: what all names begin with that the libraries show, of this package and of no other;
    umat: what tells the places of STATEV and PROPS, of a package that is a user material too, whose
    libraries also show `umat_` and `vumat_`
    """

    libraries: dict[str, str]
    source: str
    header: str | None
    prefix: str
    umat: str | None = None

    @property
    def short_prefix(self) -> str:
        """The prefix as it was chosen, without what tells packages apart by their content."""
        return self.prefix.rpartition("_")[0] or self.prefix


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a package comes from.

    laws: the sha256 of each Python file whose laws the model is made of; loading needs none of it;
    program: what is computed, at which precision and with which derivatives, as a hash: the same in
    the folders of all devices, and in the stub
    """

    file: str
    digest: str
    overrides: tuple[str, ...]
    command: str
    laws: dict[str, str] = msgspec.field(default_factory=dict)
    program: str = ""

    def spell(self, option: str, value: str = "") -> str:
        """An option as whoever compiled it gives it: a flag, or an argument of `ingot.compile`."""
        return spell_option(self.command or IN_PROCESS, option, value)


class Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A package for one device and one precision.

    adjoints: whether its kernel has an entry for those of all inputs and promoted parameters;
    cuts: of a model that sums over points, the segments of each of its functions, whose entries in
    the library are `<function>_<segment>`; there are no C functions then
    """

    format: str = FORMAT
    schema_version: int = SCHEMA
    name: str
    device: Device
    dtype: Precision
    inputs: tuple[VariableInfo, ...]
    outputs: tuple[VariableInfo, ...]
    parameters: tuple[ParameterInfo, ...]
    constants: tuple[ParameterInfo, ...]
    solvers: tuple[SolverInfo, ...]
    segments: tuple[SegmentInfo, ...]
    derivatives: tuple[Block, ...]
    adjoints: bool = False
    cuts: dict[str, SegmentedInfo] = {}
    kernel: KernelFiles | None
    inductor: InductorDescription | None
    torch_version: str
    origin: Origin
    digests: dict[str, Digest]
    seal: Digest = BLANK

    @property
    def entries(self) -> tuple[str, ...]:
        """What the kernel computes, each an entry of the library: functions, or their segments."""
        if not self.cuts:
            slopes, adjoints = bool(self.derivatives), self.adjoints
            return ("forward", *(["jacobian"] if slopes else []), *(["vjp"] if adjoints else []))
        return tuple(
            f"{name}_{i}" for name, cut in self.cuts.items() for i, step in enumerate(cut.steps)
            if step.rule is None
        )  # fmt: skip

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the backends consist of."""
        kernel = self.kernel
        own = () if kernel is None else (*kernel.libraries.values(), kernel.source)
        if kernel is not None and kernel.header is not None:
            own = (*own, kernel.header)
        if kernel is not None and kernel.umat is not None:
            own = (*own, kernel.umat)
        return (*own, *(self.inductor.files if self.inductor is not None else ()))


def json_schema() -> dict[str, object]:
    """The JSON Schema of the metadata file."""
    return msgspec.json.schema(Metadata)
