"""What is shown of a joint is what runs: its graphs, what Inductor makes of them, their sources."""

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ingot.train as train
from ingot.errors import IngotError
from ingot.train.describe import STAGES, Section, describe, describe_code, write_graph
from tests.train.models import MODELS

WIDE = [[2.0 * i, 2.0 * i + 1] for i in range(30)]
NARROW = [2.0, 3.0]


def loss(x: Tensor, w: Tensor) -> Tensor:
    first = x @ w
    second = torch.tanh(first)
    third = second * torch.ones(4, 2) * 3
    picked = torch.tensor(WIDE)[(x[:, 0] > 0).long()]
    return (third * torch.tensor(NARROW) + picked).sum()


def line_after(function: Callable[..., Any], count: int) -> int:
    return function.__code__.co_firstlineno + count


def halved(function: Callable[..., Any], *example: Tensor, dynamic: Any = None) -> train.Halves:
    return train.partition(train.trace(train.prepare(function, example, dynamic)))


@pytest.fixture(scope="module")
def halves() -> train.Halves:
    return halved(loss, torch.ones(4, 3), torch.ones(3, 2, requires_grad=True))


@pytest.fixture(scope="module")
def sections(halves: train.Halves) -> dict[str, tuple[Section, ...]]:
    """All stages but the code, which needs g++."""
    return {stage: describe(halves, stage).sections for stage in STAGES if stage != "code"}


def operations(graph: Any) -> int:
    return sum(node.op == "call_function" for node in graph.graph.nodes)


def test_graphs_are_those_of_the_joint(
    halves: train.Halves, sections: dict[str, tuple[Section, ...]]
) -> None:
    joint = train.assembled(halves, "eager", "eager")
    assert halves.backward is not None
    graphs = {"joint": halves.traced.graph, "forward": halves.forward, "backward": halves.backward}
    kept = sum(4 * 4 * 2 for _ in joint.codes[0].saved.extra)
    for stage, graph in graphs.items():
        (section,) = sections[stage]
        assert section.digest == sha256(graph.code.encode()).hexdigest()
        assert section.counts["operations"] == operations(graph)
        assert section.counts["bytes kept between"] == kept > 0
        assert [row["name"] for row in section.rows] == [n.name for n in graph.graph.nodes]
        assert str(section).startswith(f"# {stage}: {operations(graph)} operations, ")
    assert "primals_2 = given w  # float32[3, 2]" in sections["joint"][0].text


def test_every_operation_names_the_line_it_comes_from(
    sections: dict[str, tuple[Section, ...]],
) -> None:
    def lines(stage: str, word: str) -> set[int]:
        rows = sections[stage][0].rows
        return {row["line"] for row in rows if row["operation"].startswith(f"aten.{word}.")}

    assert lines("forward", "mm") == {line_after(loss, 1)}
    assert lines("forward", "tanh") == {line_after(loss, 2)}
    # the backward of each is at the line that it differentiates
    assert lines("backward", "mm") == {line_after(loss, 1)}
    assert lines("backward", "sub") == {line_after(loss, 2)}
    assert lines("backward", "expand") == {line_after(loss, 5)}
    rows = [r for s in ("joint", "forward", "backward") for r in sections[s][0].rows]
    called = [row for row in rows if row["kind"] == "call_function"]
    assert all(Path(row["file"]).name == "test_describe.py" for row in called)
    assert "test_describe.py:" in sections["backward"][0].text.splitlines()[-2]


def test_passes_lead_from_the_graph_to_what_is_lowered(
    halves: train.Halves, sections: dict[str, tuple[Section, ...]]
) -> None:
    assert halves.backward is not None
    for graph, at in ((halves.forward, 0), (halves.backward, 2)):
        passes, lowered = sections["post-grad"][at : at + 2]
        nodes = len(graph.graph.nodes)
        for row in passes.rows:
            assert row["before"] == nodes
            nodes = row["after"]
        assert nodes == len(lowered.rows)
        assert "constant_fold_uniform_value" in [row["name"] for row in passes.rows]
    assert any(row.get("line") == line_after(loss, 1) for row in sections["post-grad"][1].rows)


def test_fusion_is_told_and_its_refusals(sections: dict[str, tuple[Section, ...]]) -> None:
    before, after = sections["inductor-ir"][1], sections["fused"][3]
    decisions = sections["fused"][2].rows
    fused = [row for row in decisions if row["fused"]]
    parts = [part for row in after.rows for part in row["parts"]]
    assert sorted(parts) == sorted(row["name"] for row in before.rows)
    assert [row["parts"] for row in after.rows if len(row["parts"]) > 1] == [
        row["nodes"] for row in fused
    ]
    assert all(row["why"] for row in decisions if not row["fused"])
    loops = [row for row in before.rows if "aten.tanh.default" in row["operations"]]
    assert any(f"test_describe.py:{line_after(loss, 2)}" in row["lines"] for row in loops)


def test_refusals_of_fusion_have_reasons() -> None:
    def apart(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.tanh(x).sum(0), torch.exp(x.T.contiguous()).sum(0)

    section = describe(halved(apart, torch.ones(8, 8)), "fused").sections[0]
    assert section.counts["after"] <= section.counts["nodes before fusion"]
    assert all(re.match(r"(not )?fused op\d", line) for line in section.text.splitlines())
    assert any(not row["fused"] and row["why"] for row in section.rows)


def test_constants_are_stored_or_written_into_the_code(
    sections: dict[str, tuple[Section, ...]],
) -> None:
    ways = {row["tensor"]: row["becomes"] for row in sections["constants"][1].rows}
    assert ways == {"float32[30, 2]": "stored", "float32[2]": "inlined"}
    assert "constant_fold_uniform_value: " in sections["constants"][1].text


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 3.0
        self.shift = torch.ones(2)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale + self.shift + OFFSET


OFFSET = torch.ones(2)


def test_values_taken_from_the_source_are_listed() -> None:
    section = describe(halved(Scaled(), torch.ones(2)), "constants").sections[0]
    assert {"name": "scale", "value": 3.0, "becomes": "fixed"} in section.rows
    tensors = {row["name"]: row["becomes"] for row in section.rows if "tensor" in row}
    assert list(tensors.values()) == ["an input"] and "OFFSET" in str(tensors)


@pytest.mark.slow
def test_code_is_what_the_package_was_compiled_from(mlp_package: Path) -> None:
    make, example, dynamic = MODELS["mlp"]
    shown = describe(halved(make(), example, dynamic=dynamic), "code")
    packaged = [
        section
        for i, half in enumerate(("forward", "backward"))
        for section in describe_code(half, (mlp_package / f"graph{i}.pt2").read_bytes())
    ]
    assert [s.name for s in packaged] == [
        "forward, wrapper.cpp", "forward, kernel.cpp", "backward, wrapper.cpp",
        "backward, kernel.cpp",
    ]  # fmt: skip
    assert shown.sections == tuple(packaged)
    kernels = {s.name: re.findall(r"void +(cpp_fused_\w+)\(", s.text) for s in packaged}
    assert kernels["backward, kernel.cpp"]
    for half in ("forward", "backward"):
        wrapper = next(s.text for s in packaged if s.name == f"{half}, wrapper.cpp")
        assert all(name in wrapper for name in kernels[f"{half}, kernel.cpp"])


def test_open_sizes_keep_their_names() -> None:
    shown = describe(halved(nn.Linear(3, 2), torch.ones(5, 3), dynamic="batch"), "forward")
    assert "float32[batch, 2]" in str(shown)


def test_what_is_not_there_is_told_by_name() -> None:
    plain = halved(torch.tanh, torch.ones(3))
    for stage in ("joint", "backward"):
        with pytest.raises(IngotError, match="nothing in it needs a gradient"):
            describe(plain, stage)
    assert describe(plain, "forward").sections[0].counts == {"operations": 1}
    with pytest.raises(IngotError, match="no stage 'fusd'\n  fix: did you mean 'fused'"):
        describe(plain, "fusd")


def test_a_graph_kept_in_a_package_has_places_and_no_source(
    halves: train.Halves, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = write_graph(halves, "backward")
    assert f"# test_describe.py:{line_after(loss, 2)} in loss\n" in text
    assert "torch.tanh" not in text
    monkeypatch.setattr("ingot.train.describe.MOST_KEPT", 10)
    assert re.fullmatch(
        r"# backward: .*\nit has \d+ characters: not kept\n", write_graph(halves, "backward")
    )
