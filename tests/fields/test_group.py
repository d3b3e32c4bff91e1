"""The order in which computes run, each once."""

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from ingot.errors import IngotError
from ingot.fields import build, run
from ingot.fields.group import Group, steps_of
from ingot.fields.step import Buffer, Step
from ingot.hit import read_text


def step(name: str, reads: str = "", gives: str = "") -> Step:
    sources = {f"a{k}": Buffer(word) for k, word in enumerate(reads.split())}
    return Step(name, lambda **_: None, sources, tuple((gives or name).split()))


def order(*parts: Step | Group) -> str:
    return " ".join(each.name for each in steps_of(parts))


def test_writers_come_before_readers() -> None:
    assert order(step("d", "c"), step("c", "b"), step("b", "a"), step("a")) == "a b c d"


def test_strangers_keep_their_order() -> None:
    assert order(step("b"), step("a"), step("d", "c"), step("c")) == "b a c d"


def test_two_writers_both_come_before_a_reader() -> None:
    assert order(step("r", "x"), step("w1", "", "x"), step("w2", "", "x")) == "w1 w2 r"


def test_a_compute_may_read_what_it_writes() -> None:
    assert order(step("c", "c", "c"), step("d", "c")) == "c d"


def test_groups_are_opened() -> None:
    inner = Group("inner", (step("q", "p y"), step("p", "x")))
    assert order(inner, step("y", "p"), step("x")) == "x p y q"
    assert Group("outer", (inner, step("z"))).groups == ("outer", "inner")


def test_a_group_runs_as_a_whole_where_its_steps_go_in_circles() -> None:
    inner = Group("inner", (step("p", "c", "x"), step("q", "x", "c2")))
    assert order(inner, step("s", "c2", "x")) == "p q s"


def test_a_circle_is_named() -> None:
    with pytest.raises(IngotError, match="wait for each other: a <- b <- a"):
        order(step("a", "b"), step("b", "a"))


def test_what_a_group_reads_from_outside_is_known() -> None:
    group = Group("g", (step("p", "c", "x"), step("q", "x d", "y")))
    assert group.reads == ("c", "d")
    assert group.writes == ("x", "y")


@dataclass
class Nesting:
    """A random list of computes in groups, and what a plain loop over it makes of the buffers."""

    dice: random.Random
    reads: dict[str, tuple[str, int]] = field(default_factory=dict)

    def text(self, names: list[str], depth: int = 0) -> str:
        """Blocks of the computes in their order, some of them inside groups, each written once."""
        blocks, rest = [], list(names)
        while rest:
            if depth < 3 and self.dice.random() < 0.4:
                count = self.dice.randint(0, len(rest))
                inner, rest = rest[:count], rest[count:]
                blocks.append(self.group(self.text(inner, depth + 1), names))
            else:
                blocks.append(self.compute(rest.pop(0)))
        return "\n".join(blocks)

    def group(self, inner: str, names: list[str]) -> str:
        more = " ".join(self.dice.sample(names, self.dice.randint(0, len(names))))
        jit = self.dice.choice(["", "enable_jit = false", "enable_jit = true"])
        name = f"g{self.dice.getrandbits(48)}"
        return f"[{name}]\ntype = ComputeGroup\ncomputes = '{more}'\n{jit}\n{inner}\n[]"

    def compute(self, name: str) -> str:
        before, factor = self.reads[name]
        inputs = " ".join(dict.fromkeys((name, before)))
        expression = f"{factor}*{name} + {before} + 1"
        return (f"[{name}]\ntype = ParsedCompute\nbuffer = {name}\ninputs = '{inputs}'\n"
                f"expression = '{expression}'\n[]")  # fmt: skip

    def drawn(self) -> tuple[str, list[str]]:
        """The text of a list, and its computes in the order of the file."""
        names = [f"n{at}" for at in range(self.dice.randint(1, 6))]
        self.dice.shuffle(names)
        # each reads itself and one of those that come before it by number: no circles
        self.reads = {
            name: (f"n{self.dice.randrange(int(name[1:]) + 1)}", self.dice.randint(1, 3))
            for name in names
        }
        return self.text(names), names

    def expected(self, turns: int) -> dict[str, float]:
        """What the buffers hold after so many turns, each compute run once in each."""
        values = dict.fromkeys(self.reads, 0.0)
        for _ in range(turns):
            for name in sorted(values):
                before, factor = self.reads[name]
                values[name] = factor * values[name] + values[before] + 1
        return values


def nested(seed: int, section: str = "Solve") -> tuple[str, Nesting]:
    drawing = Nesting(random.Random(seed))
    listed, names = drawing.drawn()
    buffers = "\n".join(f"[{name}]\n[]" for name in names)
    return (f"[Domain]\ndim = 2\nnx = 4\nny = 3\n[]\n[TensorBuffers]\n{buffers}\n[]\n"
            f"[TensorComputes]\n[{section}]\n{listed}\n[]\n[]\n"
            "[Executioner]\ntype = Transient\nnum_steps = 3\n[]"), drawing  # fmt: skip


TURNS = {"Initialize": 1, "Solve": 3, "Postprocess": 4}
"""How often each list runs in three steps."""


@pytest.mark.parametrize("section", TURNS)
@pytest.mark.parametrize("seed", range(60))
def test_a_compute_runs_once_a_turn_however_groups_name_it(
    section: str, seed: int, tmp_path: Path
) -> None:
    text, drawing = nested(seed, section)
    made = build(read_text(text, moose=True))
    state = run(made, tmp_path, jit=False).state
    for name, value in drawing.expected(TURNS[section]).items():
        assert torch.all(state.buffers[name] == value), name
    steps = made.root.steps if section == "Solve" else getattr(made, section.lower())
    assert sorted(step.name for step in steps) == sorted(drawing.reads)


@pytest.mark.parametrize("seed", [1, 5, 11])
def test_groups_give_the_same_where_they_are_compiled(seed: int, tmp_path: Path) -> None:
    text, drawing = nested(seed)
    state = run(build(read_text(text, moose=True)), tmp_path).state
    for name, value in drawing.expected(3).items():
        assert torch.all(state.buffers[name] == value), name


@pytest.mark.parametrize("jit", ["true", "false"])
def test_a_group_that_names_computes_runs_each_once(jit: str, tmp_path: Path) -> None:
    text = f"""
    [Domain]
      dim = 1
      nx = 4
    []
    [TensorBuffers]
      [n]
      []
    []
    [TensorComputes]
      [Solve]
        [n]
          type = ParsedCompute
          buffer = n
          inputs = n
          expression = 'n + 1'
        []
        [group]
          type = ComputeGroup
          computes = 'n'
          enable_jit = {jit}
        []
      []
    []
    [Executioner]
      type = Transient
      num_steps = 3
    []
    """
    made = build(read_text(text, moose=True))
    assert torch.all(run(made, tmp_path, jit=False).state.buffers["n"] == 3)
    assert [bool(step.reason) for step in made.root.steps] == [jit == "false"]


@pytest.mark.parametrize("section", TURNS)
def test_a_group_that_names_no_compute_is_told(section: str) -> None:
    text = (f"[Domain]\ndim = 1\n[]\n[TensorComputes]\n[{section}]\n[one]\ntype = ConstantTensor\n"
            "buffer = one\n[]\n[g]\ncomputes = onne\n[]\n[]\n[]")  # fmt: skip
    with pytest.raises(IngotError, match=rf"\[{section}\] has no compute 'onne'"):
        build(read_text(text, moose=True))


def test_a_compute_of_two_groups_that_run_whole_runs_once() -> None:
    shared = step("s", "", "x")
    first = Group("first", (shared, step("p", "c", "y"), step("q", "y", "c2")))
    second = Group("second", (shared, step("r", "c2", "y")))
    assert order(first, second) == "s p q r"
