"""A `[Drivers]` block and its name -> the driver it describes."""

from typing import Protocol

from ingot.drivers.transient import TransientDriver, transient_driver
from ingot.drivers.values import Shapes
from ingot.drivers.verdict import Verdict
from ingot.errors import IngotError, Problem, Span, did_you_mean, raise_if
from ingot.execute import Backend
from ingot.execute.devices import require_device
from ingot.hit import Tree, list_presets, unknown_sections
from ingot.keywords import check_keywords
from ingot.model import SECTIONS, Factory, Model, find_home

__all__ = ["SELF_CHECKING", "Checker", "build_driver", "self_checking", "structural_shapes"]

SELF_CHECKING = ("ModelUnitTest", "TransientRegression", "Verification")
"""The types of drivers that judge what they run."""


class Checker(Protocol):
    """A driver that judges itself."""

    def run(self, backend: Backend | None = None) -> Verdict:
        """Run by a backend, or by what suits the model; compare, and say what is wrong."""
        ...


@check_keywords
def build_driver(
    source: Tree | Factory, name: str, asked: Span | None = None, *, strict: bool = False,
    untrusted: bool = False, device: str = "cpu",
) -> TransientDriver | Checker:  # fmt: skip
    """The driver of a `[Drivers]` block.

    strict: what it warns of is an error; untrusted: Python of the file is evaluated within bounds,
    and nothing else that it names is executed; device: what its kernels run on.
    """
    if not isinstance(source, Factory):
        source = Factory(source, strict=strict, untrusted=untrusted)
    factory = source
    factory.device = str(require_device(device))
    raise_if(unknown_sections(factory.tree, SECTIONS))
    block = factory.tree.require("Drivers", name, asked)
    kind = block.require("type")
    known = ("TransientDriver", *SELF_CHECKING)
    if kind.string() not in known:
        message = f"no type '{kind.string()}' in [Drivers]"
        known = (*known, *list_presets("Drivers"))
        fix = did_you_mean(kind.string(), known) or f"choose one of: {', '.join(known)}"
        fix = find_home(kind.string()) or fix
        raise IngotError([Problem("unknown-type", message, kind.value_span, fix)])
    return factory.elsewhere(kind.string(), "Drivers", block).build(block, factory)


def structural_shapes(factory: Factory, model: Model, driver: str | None = None) -> Shapes:
    """The structural shapes of a model's variables: as declared, and as a driver's values show."""
    shapes = factory.settings.extents(model)
    return shapes if driver is None else {**shapes, **transient_driver(factory, driver).shapes}


def self_checking(tree: Tree) -> tuple[str, ...]:
    """The names of the drivers that judge themselves."""
    blocks = (block for part in tree.section("Drivers") for block in part.blocks)
    return tuple(block.name for block in blocks if block.type in SELF_CHECKING)
