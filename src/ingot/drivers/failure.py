"""Points that failed -> an error, and a HIT file for each solve that repeats its worst point."""

import os
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from ingot.catalog import key, law_files
from ingot.drivers.result import Result
from ingot.drivers.transient import TransientDriver
from ingot.drivers.values import DRIVEN, Given
from ingot.errors import Problem, Span, raise_if
from ingot.hit import Block, Field, Tree
from ingot.model import Law, Model, walk
from ingot.runtime.stub import AOTIModel
from ingot.types import Value

__all__ = ["require_converged"]

NOWHERE = Span("", 0)


def require_converged(
    driver: TransientDriver, result: Result, folder: Path = Path("failed")
) -> None:
    """Raise where points failed, with the worst point of each solve written to the folder."""
    problems: list[Problem | None] = []
    for status in result.statuses:
        worst = status.worst()
        if worst is None:
            continue
        file = folder / f"{status.solve}.i"
        step, point = worst
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"# Point {point} of [{driver.block.name}], whose solve [{status.solve}] fails at step"
            f" {step}.\n{alone(driver, step + 1, point, folder)}"
        )
        words = " ".join([str(file), *(f"--load {os.path.relpath(law)}" for law in law_files())])
        problems.append(status.problem(words, in_parts=not may_halve(driver, status.solve)))
    raise_if(problem for problem in problems if problem is not None)


def may_halve(driver: TransientDriver, solve: str) -> bool:
    """Whether a solve could take a step in parts, and does not."""
    if isinstance(driver.model.body, AOTIModel):
        return False
    return any(s.name == solve and s.substeps is None for s in driver.program.solves)


def alone(driver: TransientDriver, steps: int, point: int, folder: Path) -> Tree:
    """A file that takes one point of a driver through its first steps."""
    tree = driver.factory.tree
    chosen = Chosen(driver.batch, point)
    drivers = section("Drivers", [chosen.driver(driver, steps)])
    models = [
        moved(chosen.model(block, driver.model), tree, folder)
        for block in blocks_of(tree, "Models")
    ]
    others = [block for block in tree.blocks if block.name not in ("Tensors", "Models", "Drivers")]
    kept = [*others, section("Models", models)]
    tensors = [*referenced(tree, kept, folder), *chosen.tensors()]
    return Tree((), (section("Tensors", tensors), *kept, drivers))


class Chosen:
    """One point of a batch: its values as `[Tensors]` entries, and blocks that refer to them."""

    def __init__(self, batch: tuple[int, ...], point: int) -> None:
        self.batch = batch
        self.point = point
        self.expressions: dict[str, str] = {}

    def entry(self, name: str, value: Value, steps: int | None = None) -> str:
        """Store the point's part of a value, of its first steps where it has any, under a name."""
        at = 0 if steps is None else 1
        data: Tensor = value.data[:steps] if at else value.data
        batch = value.dynamic_batch.shape[at:]
        rows, inner = data.shape[:at], data.shape[at + len(batch) :]
        ones = [1] * (len(self.batch) - len(batch))
        full = data.reshape((*rows, *ones, *batch, *inner)).expand((*rows, *self.batch, *inner))
        flat = full.reshape(*rows, -1, *inner)
        self.expressions[name] = expression(type(value), flat.select(at, self.point), value.sub)
        return name

    def driver(self, driver: TransientDriver, steps: int) -> Block:
        """The driver's block over the point's values."""
        own = ("type", "model", "time")
        fields = [field for name in own if (field := driver.block.field(name)) is not None]
        clock = self.entry("failed_time", driver.clock.value, steps)
        fields.append(written("prescribed_time", clock))
        forces = {n: g for n, g in driver.forces.items() if n != driver.clock.name}
        fields += self.lists("prescribed_", forces, steps)
        fields += self.lists("ic_", driver.starts, None)
        return replace(driver.block, fields=tuple(fields), blocks=())

    def lists(self, prefix: str, given: Mapping[str, Given], steps: int | None) -> Iterable[Field]:
        """The names and values of one list, kind by kind."""
        for kind in DRIVEN:
            some = [g for g in given.values() if type(g.value).__name__ == kind]
            if some:
                values = [self.entry(f"failed_{prefix}{g.name}", g.value, steps) for g in some]
                yield written(f"{prefix}{kind}_names", " ".join(g.name for g in some))
                yield written(f"{prefix}{kind}_values", " ".join(values))

    def model(self, block: Block, root: Model) -> Block:
        """A model's block, with the point's values for parameters that vary over the batch."""
        owner = next((owner for _, owner, _ in walk(root) if owner.name == block.name), None)
        if owner is None or not isinstance(owner.body, Law):
            return block
        fields = {field.name: field for field in block.fields}
        for argument, bound in owner.body.parameters.items():
            many = not bound or isinstance(bound[0], tuple)
            for place, (role, stored) in enumerate(bound if many else (bound,)):
                if role != "value" or not owner.values[stored].dynamic_batch.shape:
                    continue
                words = list(fields[key(argument)].words()) if many else [""]
                words[place] = self.entry(f"failed_{block.name}_{stored}", owner.values[stored])
                fields[key(argument)] = written(key(argument), " ".join(words))
        return replace(block, fields=tuple(fields.values()))

    def tensors(self) -> list[Block]:
        """The entries of all values that were stored."""
        python = written("type", "Python")
        return [
            Block(name, f"Tensors/{name}", (python, written("expr", text)), (), NOWHERE)
            for name, text in self.expressions.items()
        ]


def expression(kind: type[Value], data: Tensor, sub: int) -> str:
    """Python that makes a value again, to the last bit."""
    text = textwrap.fill(repr(data.tolist()), 96, break_long_words=False)
    text = re.sub(r"\b(nan|inf)\b", r"math.\1", text)
    axes = f", sub_batch_ndim={sub}" if sub else ""
    return f"{kind.__name__}(torch.tensor({text}, dtype=torch.float64){axes})"


def referenced(tree: Tree, kept: Iterable[Block], folder: Path) -> list[Block]:
    """The `[Tensors]` entries that the kept blocks, or one another, mention."""
    known = {block.name: block for block in blocks_of(tree, "Tensors")}
    found: dict[str, Block] = {}
    left = {word for block in kept for word in words_in(block)}
    while left:
        name = left.pop()
        if name in known and name not in found:
            found[name] = known[name]
            left |= words_in(known[name])
    return [moved(known[name], tree, folder) for name in known if name in found]


def moved(block: Block, tree: Tree, folder: Path) -> Block:
    """A block whose file or package, if it names one, is found from another folder."""
    file = block.field("csv_file") or block.field("artifact_path")
    if file is None or tree.file is None:
        return block
    path = os.path.relpath(tree.file.parent / file.string(), folder)
    others = (field for field in block.fields if field is not file)
    return replace(block, fields=(*others, written(file.name, path)))


def words_in(block: Block) -> set[str]:
    """All words of the values in a block and its sub-blocks."""
    own = {word for field in block.fields for word in re.findall(r"\w+", field.text)}
    return own.union(*(words_in(inner) for inner in block.blocks))


def blocks_of(tree: Tree, name: str) -> list[Block]:
    """The blocks of all sections of a name."""
    return [block for part in tree.section(name) for block in part.blocks]


def section(name: str, blocks: Iterable[Block]) -> Block:
    return Block(name, name, (), tuple(blocks), NOWHERE)


def written(name: str, text: str) -> Field:
    return Field(name, text, NOWHERE, NOWHERE)
