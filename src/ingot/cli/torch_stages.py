"""MODULE:NAME, or the folder of a joint or of regions -> what Ingot makes of it at a stage.

A module is imported and compiled in a child process, whose settings and caches of torch are its
own; a package is read, and none of its code is loaded.
"""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ingot.errors import IngotError, Problem, did_you_mean

if TYPE_CHECKING:
    from ingot.regions.report import Report
    from ingot.train.describe import Section, Shown
    from ingot.train.package import Described
    from ingot.train.signature import Saved, Signature

__all__ = [
    "find_signatures", "is_package", "is_target", "read_graphs", "region_report", "show_module",
    "show_package",
]  # fmt: skip

PACKAGE = "graphs.json"


def is_target(word: str) -> bool:
    """Whether a word is of the form module:function."""
    place, _, name = word.partition(":")
    return name.isidentifier() and all(part.isidentifier() for part in place.split("."))


def is_package(word: str) -> bool:
    """Whether a folder holds the package of a joint or of regions."""
    # a word may be no path at all
    return os.path.isfile(os.path.join(word, PACKAGE))


def read_graphs(place: Path) -> "Described[Any]":
    """The metadata of a package of graphs, whatever its kind."""
    from ingot.package.seal import open_metadata
    from ingot.train.package import AGAIN, FORMAT, SCHEMA, Described

    return open_metadata(place / PACKAGE, Described[Any], FORMAT, SCHEMA, AGAIN["joint"])


def find_signatures(described: "Described[Any]") -> "list[Signature]":
    """What a package may be called with: the signatures of a joint, that of a module of regions."""
    from ingot.train.signature import Signature

    if described.kind == "regions":
        return [msgspec.convert(described.more["signature"], Signature)]
    return [call.signature for call in described.calls]


def show_module(target: str, stage: str) -> "Shown":
    """A stage of a function or module, whose example stands beside it as NAME_example."""
    from ingot.train.describe import Shown

    work = "units" if stage == "units" else "describe"
    return msgspec.json.decode(_in_child(work, target, stage), type=Shown)


def region_report(target: str) -> "Report":
    """What compiling the blocks of a module takes, and the whole of it, both from empty caches."""
    from ingot.regions.report import Report

    return msgspec.json.decode(_in_child("report", target, ""), type=Report)


def _in_child(work: str, target: str, stage: str) -> str:
    """The JSON that a function of this file prints about the target in a process of its own."""
    if not is_target(target):
        told = f"'{target}' is not of the form module:function, and no package"
        raise _problem("stage-target", told, "for example my_models:loss")
    from ingot.graphs.torch_private import CHILD_ENVIRONMENT

    paths = os.pathsep.join([str(Path.cwd()), *sys.path])
    code = f"from ingot.cli.torch_stages import child; child({work!r})"
    done = subprocess.run(
        [sys.executable, "-c", code, target, stage], capture_output=True, text=True,
        env={**os.environ, **CHILD_ENVIRONMENT, "PYTHONPATH": paths},
    )  # fmt: skip
    if done.returncode == 0:
        return done.stdout.splitlines()[-1]
    last = (done.stderr.strip().splitlines() or ["its process ended without a word"])[-1]
    try:
        problems = [_problem(*p).problems[0] for p in msgspec.json.decode(last)]
    except (msgspec.DecodeError, TypeError):
        fix = "call it once without compiling, and see that it runs"
        raise _problem("stage-target", f"'{target}' cannot be compiled: {last}", fix) from None
    raise IngotError(problems)


# in the child process


def child(work: str) -> None:
    """Print what a function of this file finds, or the problems, as one line of JSON."""
    try:
        print(f"\n{_WORK[work](*sys.argv[1:3])}")
    except IngotError as error:
        rows = [(p.code, p.message, p.fix) for p in error.problems]
        sys.exit(msgspec.json.encode(rows).decode())


def _describe(target: str, stage: str) -> str:
    from ingot.train import partition, prepare, trace
    from ingot.train.describe import describe

    function, example, beside = _find(target)
    dynamic = beside("dynamic")
    return describe(partition(trace(prepare(function, example, dynamic))), stage).json()


def _report(target: str, _: str) -> str:
    from ingot.regions import compile

    module, example, blocks = _find_blocks(target)
    compiled = compile(module, example, blocks, measure=True)
    return msgspec.json.encode(compiled.report).decode()


def _units(target: str, stage: str) -> str:
    """Call a module whose pieces run as they are, and note each distinct one of them."""
    from ingot.regions import compile
    from ingot.train.describe import Shown, describe_graph

    module, example, blocks = _find_blocks(target)
    graphs = []

    def note(graph: Any, inputs: Any) -> Any:
        for node, value in zip(graph.graph.find_nodes(op="placeholder"), inputs, strict=True):
            node.meta["val"] = value
        graphs.append(graph)
        return graph

    compiled = compile(module, blocks=blocks, backend=note)
    if isinstance(example, dict):
        compiled(**example)
    else:
        compiled(*(example if isinstance(example, tuple | list) else (example,)))
    made = [b for b in compiled.report.blocks if b.compiled]
    sections = [
        describe_graph(f"{block.kind} {block.name}", graph, {"instances": block.instances})
        for block, graph in zip(made, graphs, strict=True)
    ]
    return Shown(type(module).__name__, stage, tuple(sections)).json()


_WORK = {"describe": _describe, "report": _report, "units": _units}


def _find_blocks(target: str) -> tuple[Any, Any, Any]:
    """A module, its example, and its blocks, which may stand beside it as NAME_blocks."""
    from torch import nn

    module, example, beside = _find(target)
    if not isinstance(module, nn.Module):
        told = f"'{target}' is a {type(module).__name__}"
        raise _problem("stage-target", told, "name an nn.Module; a function has no blocks")
    return module, example, beside("blocks") or "auto"


def _find(target: str) -> tuple[Any, Any, Any]:
    """The function or module, its example, and a look-up of what else stands beside it."""
    place, name = target.split(":")
    module = importlib.import_module(place)
    if not hasattr(module, name):
        close = did_you_mean(name, vars(module)) or "name a function or a module of it"
        raise _problem("stage-target", f"'{place}' has no '{name}'", close)
    example = getattr(module, f"{name}_example", None)
    if example is None:
        fix = f"write {name}_example = (torch.randn(4, 3), ...) beside it"
        told = f"'{place}' has no arguments to call '{name}' with"
        raise _problem("stage-example", told, fix)
    given = example() if callable(example) else example
    return getattr(module, name), given, lambda what: getattr(module, f"{name}_{what}", None)


# packages


def show_package(folder: str, stage: str) -> "Shown":
    """A stage of a package, as far as it holds it; `model` is its signature and its files."""
    from ingot.train.describe import Section, Shown, describe_code

    place = Path(folder)
    parts = [*_parts(place)]
    sections: list[Section] = []
    if stage == "model":
        sections = [_signature(name, signature, saved) for name, signature, saved, _ in parts]
        sections.append(_files(place))
    elif stage == "code":
        for name, _, _, files in parts:
            for half, file in files.items():
                title = f"{name}, {half}"
                text = (place / file).read_bytes()
                if file.endswith(".pt2"):
                    sections += describe_code(title, text)
                else:
                    sections.append(Section(name=title, text=text.decode()))
    elif stage in ("forward", "backward"):
        texts = [(name, place / f"{files.get(stage, '').partition('.')[0]}.txt")
                 for name, _, _, files in parts]  # fmt: skip
        sections = [Section(name=n, text=t.read_text()) for n, t in texts if t.is_file()]
    elif stage == "constants":
        for one in find_signatures(read_graphs(place)):
            taken = [{"name": k, "value": v, "becomes": "fixed"} for k, v in one.constants.items()]
            text = "\n".join(f"{row['name']} = {row['value']}: fixed" for row in taken)
            counts = {"constants": len(taken)}
            sections.append(Section(name=one.name, counts=counts, rows=tuple(taken), text=text))
    if not sections:
        told = f"the package '{place.name}' does not hold its stage '{stage}'"
        fix = f"ingot show module:name --stage {stage}; of a package --stage model, forward,"
        fix += " backward, constants or code"
        raise _problem("stage-not-kept", told, fix)
    return Shown(place.name, stage, tuple(sections))


def _parts(place: Path) -> Iterator[tuple[str, "Signature", "Saved", dict[str, str]]]:
    """The joints of a package: name, signature, what is saved, and the file of each half."""
    from ingot.train.package import FILES

    described = read_graphs(place)
    for call in described.calls:
        files = {k: FILES[described.graphs[n]][1].format(n) for k, n in call.graphs.items()}
        yield call.signature.name, call.signature, call.saved, files


def _signature(name: str, signature: "Signature", saved: "Saved") -> "Section":
    from ingot.train.describe import Section

    rows = ({"signature": msgspec.to_builtins(signature), "saved": msgspec.to_builtins(saved)},)
    kept = [f"  keeps  {each}" for each in saved.extra]
    return Section(name=name, rows=rows, text="\n".join([str(signature), *kept]))


def _files(place: Path) -> "Section":
    from ingot.train.describe import Section

    sizes = {f.name: f.stat().st_size for f in sorted(place.iterdir())}
    return Section(
        name="files", counts={"bytes": sum(sizes.values())},
        rows=tuple({"name": name, "bytes": size} for name, size in sizes.items()),
        text="\n".join(f"{size:12} {name}" for name, size in sizes.items()),
    )  # fmt: skip


def _problem(code: str, message: str, fix: str) -> IngotError:
    return IngotError([Problem(code, message, None, fix)])
