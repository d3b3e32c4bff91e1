"""`module:function` -> what torch makes of it at a stage of AOT autograd or Inductor, as text;
and of a module the report of its regions.

All of it happens in a child process, where torch writes its log artifacts; here they are read and
cut to what was asked.
"""

import importlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.regions.report import Report

__all__ = ["is_target", "region_report", "torch_stage"]

ARTIFACTS: dict[str, tuple[str, ...]] = {
    "joint": ("aot_joint_graph",),
    "forward": ("aot_graphs",),
    "backward": ("aot_graphs",),
    "post-grad": ("post_grad_graphs",),
    "inductor-ir": ("ir_pre_fusion",),
    "fused": ("ir_pre_fusion", "ir_post_fusion"),
    "code": ("output_code",),
}
PREFIX = re.compile(r"^[A-Z]\d{4} (\S+ \d+ \S+?)\] (?:\[[^\]]*\] )*?\[__(\w+)\] ?(.*)$")
OPERATION = re.compile(r"^op\w+: \w*SchedulerNode", re.MULTILINE)
INSIDE = re.compile(r"^op\w+\.snodes\[\d+\] =$", re.MULTILINE)
NODE = re.compile(r"^\s+\w+(?:: \"[^\"]*\")? = torch\.ops\.", re.MULTILINE)


def torch_stage(target: str, stage: str) -> str:
    """The text of a stage for a function, or a module, and the example that stands beside it."""
    if stage not in ARTIFACTS:
        fix = did_you_mean(stage, ARTIFACTS) or f"the stages are {', '.join(ARTIFACTS)}"
        raise _problem("stage-target", f"torch has no stage '{stage}'", fix)
    if not is_target(target):
        raise _problem("stage-target", f"'{target}' is not of the form module:function", "for"
                       " example my_models:loss")  # fmt: skip
    records = [r for r in _recorded(target, ARTIFACTS[stage]) if not _is_noise(r.text)]
    found = list(_sections(stage, records))
    if not found:
        raise _problem(
            "stage-empty", f"'{target}' has no {stage} graph: nothing in it needs a gradient",
            "give the example, or a parameter, requires_grad=True",
        )  # fmt: skip
    return "\n\n".join(found) + "\n"


def is_target(word: str) -> bool:
    """Whether a word is of the form module:function."""
    place, _, name = word.partition(":")
    return name.isidentifier() and all(part.isidentifier() for part in place.split("."))


def region_report(target: str) -> Report:
    """What compiling the blocks of a module takes, and the whole of it, both from empty caches."""
    said = _in_child("report", target, {})
    return msgspec.json.decode(said.splitlines()[-1], type=Report)


@dataclass(frozen=True, slots=True)
class _Record:
    artifact: str
    text: str


def _recorded(target: str, artifacts: tuple[str, ...]) -> list[_Record]:
    """What torch logs while a child process compiles and differentiates the target."""
    with tempfile.TemporaryDirectory(prefix="ingot-") as scratch:
        log = Path(scratch) / "log"
        _in_child("differentiate", target, {
            "TORCH_LOGS": ",".join(artifacts), "TORCH_LOGS_OUT": str(log),
            "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
        })  # fmt: skip
        return list(_records(log.read_text() if log.exists() else ""))


def _in_child(work: str, target: str, environment: dict[str, str]) -> str:
    """What a function of this file prints about the target in a process of its own."""
    paths = os.pathsep.join([str(Path.cwd()), *sys.path])
    common = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "PYTHONPATH": paths}
    said = subprocess.run(
        [sys.executable, "-c", f"from ingot.regions.stages import {work}; {work}()", target],
        capture_output=True, text=True, env={**os.environ, **common, **environment},
    )  # fmt: skip
    if said.returncode:
        raise _failed(target, said.stderr)
    return said.stdout


def _records(log: str) -> Iterator[_Record]:
    """Lines that were logged together, without what torch puts before each."""
    key, lines = None, []
    for line in log.splitlines():
        match = PREFIX.match(line)
        if match is None:
            continue
        place, artifact, text = match.groups()
        if (place, artifact) != key:
            if key is not None:
                yield _Record(key[1], "\n".join(lines))
            key, lines = (place, artifact), []
        lines.append(text.rstrip())
    if key is not None:
        yield _Record(key[1], "\n".join(lines))


def _is_noise(text: str) -> bool:
    return text.startswith(("aot_config id", "Output code written to"))


def _sections(stage: str, records: list[_Record]) -> Iterator[str]:
    """One section for each graph, headed by its counts."""
    if stage in ("inductor-ir", "fused"):
        before = [r.text for r in records if r.artifact == "ir_pre_fusion"]
        after = [r.text for r in records if r.artifact == "ir_post_fusion"]
        for i, text in enumerate(after if stage == "fused" else before):
            counts = f"{_count(OPERATION, before[i])} operations before fusion"
            if stage == "fused":
                counts += f", {_count(OPERATION, text) - _count(INSIDE, text)} after"
            yield f"# {_half(i)}: {counts}\n{_plain(text)}"
        return
    for i, record in enumerate(_chosen(stage, records)):
        text = _plain(record.text)
        name = _half(i) if stage in ("post-grad", "code") else stage
        counts = "" if stage == "code" else f": {_count(NODE, text)} operations"
        yield f"# {name}{counts}\n{text}"


def _chosen(stage: str, records: list[_Record]) -> list[_Record]:
    if stage in ("forward", "backward"):
        title = f"===== {stage.capitalize()} graph"
        return [r for r in records if title in r.text]
    return records


def _half(index: int) -> str:
    return ("forward", "backward")[index] if index < 2 else f"graph {index}"


def _count(pattern: re.Pattern[str], text: str) -> int:
    return len(pattern.findall(text))


def _plain(text: str) -> str:
    """Without titles of torch's, paths of its own files, and empty ends."""
    titles = ("TRACED GRAPH", "BEFORE FUSION", "AFTER FUSION", "Output code:")
    lines = [
        re.sub(r"^ ?\S+ (class \w+\()", r"\1", line)
        for line in text.splitlines()
        if line not in titles and not line.startswith(" =====")
    ]
    return "\n".join(lines).strip("\n")


# in the child process


def report() -> None:
    """Compile the regions of the module that the command line names.

    Its blocks may stand beside it as `NAME_blocks`.
    """
    from torch import nn

    from ingot.regions.build import compile

    target = sys.argv[1]
    place, name = target.split(":")
    module, args, kwargs = _found(target)
    if not isinstance(module, nn.Module):
        fix = "name an nn.Module; a function has no blocks"
        sys.exit(f"stage-target\0'{target}' is a {type(module).__name__}\0{fix}")
    blocks: Any = getattr(importlib.import_module(place), f"{name}_blocks", "auto")
    try:
        found = compile(module, kwargs or args, blocks, measure=True)
    except IngotError as error:
        first = error.problems[0]
        sys.exit(f"{first.code}\0{first.message}\0{first.fix}")
    print(msgspec.json.encode(found.report).decode())


def differentiate() -> None:
    """Compile and differentiate the target that the command line names."""
    import torch
    from torch import Tensor

    from ingot.graphs.torch_private import pytree

    function, args, kwargs = _found(sys.argv[1])
    result = torch.compile(function)(*args, **kwargs)
    tensors = [x for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]
    total = [x.sum() for x in tensors if x.requires_grad and x.dtype.is_floating_point]
    if total:
        torch.stack(total).sum().backward()


def _found(target: str) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """The function or module, and its arguments: `NAME_example` beside it."""
    place, name = target.split(":")
    module = importlib.import_module(place)
    if not hasattr(module, name):
        close = did_you_mean(name, vars(module)) or "name a function or a module of it"
        sys.exit(f"stage-target\0'{place}' has no '{name}'\0{close}")
    example = getattr(module, f"{name}_example", None)
    if example is None:
        fix = f"write {name}_example = (torch.randn(4, 3), ...) beside it"
        sys.exit(f"stage-example\0'{place}' has no arguments to call '{name}' with\0{fix}")
    function = getattr(module, name)
    given = example() if callable(example) else example
    if isinstance(given, dict):
        return function, (), given
    return function, tuple(given) if isinstance(given, (tuple, list)) else (given,), {}


def _failed(target: str, said: str) -> IngotError:
    """What the child says, or the last line of its trace."""
    last = said.strip().splitlines()[-1] if said.strip() else "its process ended without a word"
    parts = last.split("\0")
    if len(parts) == 3:
        return _problem(*parts)
    return _problem("stage-target", f"torch cannot compile '{target}': {last}",
                    "call it once without compiling, and see that it runs")  # fmt: skip


def _problem(code: str, message: str, fix: str) -> IngotError:
    return IngotError([Problem(code, message, None, fix)])
