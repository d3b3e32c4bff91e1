"""What a captured module runs: units in turn over numbered values; a package holds it as JSON."""

from collections.abc import Iterator

import msgspec

__all__ = ["Bound", "Plan", "StateInfo", "Step", "TensorInfo", "UnitInfo", "check"]

Size = int | str
"""A size, or the name of one that may vary."""


class TensorInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor that is passed at a call, row-major."""

    name: str
    dtype: str
    device: str
    shape: tuple[Size, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}[{', '.join(map(str, self.shape))}]"


class StateInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lifted parameter, buffer or attribute; `places` are all names of one tied tensor."""

    places: tuple[str, ...]
    kind: str
    dtype: str
    device: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool


class Bound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named size: axis `axis` of the tensor `input` of a unit or a plan."""

    name: str
    input: int
    axis: int


class UnitInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is compiled once: so many lifted tensors, then its inputs; what it takes for granted.

    kind: `block` or `glue`; guards: Python expressions over the named sizes that must be true.
    """

    name: str
    kind: str
    state: int
    inputs: tuple[TensorInfo, ...]
    sizes: tuple[Bound, ...]
    guards: tuple[str, ...]
    outputs: int


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a unit: which state and values it reads, which it gives, which end with it."""

    unit: int
    place: str
    state: tuple[int, ...]
    reads: tuple[int, ...]
    gives: tuple[int, ...]
    ends: tuple[int, ...]


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A module as steps. Values are numbered: inputs first, then what steps give.

    outputs: the values returned, and `None`, numbers or words that are returned as they are;
    input_tree, output_tree: torch's description of the nesting of both.
    """

    inputs: tuple[TensorInfo, ...]
    constants: tuple[tuple[int, bool | int | float | str | None], ...]
    input_tree: str
    state: tuple[StateInfo, ...]
    sizes: tuple[Bound, ...]
    guards: tuple[str, ...]
    units: tuple[UnitInfo, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    returned: tuple[tuple[int, bool | int | float | str | None], ...]
    output_tree: str
    autocast: str
    grad: bool
    training: bool

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(plan: Plan) -> Iterator[str]:
    yield f"given  {', '.join(map(str, plan.inputs))}"
    for guard in plan.guards:
        yield f"where  {guard}"
    for step in plan.steps:
        gives, reads = (", ".join(f"v{i}" for i in row) for row in (step.gives, step.reads))
        unit = plan.units[step.unit]
        yield f"  {gives} = {unit.kind} {step.unit} {unit.name}({reads})  # {step.place}"
    yield f"gives  {', '.join(f'v{i}' for i in plan.outputs)}"


def check(plan: Plan) -> None:
    """Nothing is read before it is given or after it has ended, and every output is given."""
    known = set(range(len(plan.inputs)))
    for step in plan.steps:
        unit = plan.units[step.unit]
        assert known >= set(step.reads), f"{step.place} reads {set(step.reads) - known} too early"
        assert len(step.reads) == len(unit.inputs) and len(step.state) == unit.state
        assert len(step.gives) == unit.outputs
        known = (known | set(step.gives)) - set(step.ends)
    assert known >= set(plan.outputs)
