"""Why a package or a call of one is refused: texts that the loaders of Python and C++ share.

In: the key of a text and what it speaks of. Out: a Problem. `cpp/include/ingot/tables.h` holds the
same texts, printed from here (`python -m benchmarks.cpp_tables`).
"""

from typing import Any, NamedTuple

from ingot.errors import IngotError, Problem, Span

__all__ = ["MESSAGES", "Message", "refuse", "tell", "word"]


class Message(NamedTuple):
    """The code, the text and the remedy of a problem; words in braces are filled in."""

    code: str
    text: str
    fix: str = "{fix}"


def _broken(text: str) -> Message:
    return Message("broken-package", text, "{again}")


MESSAGES: dict[str, Message] = {
    # files of a package
    "no package": Message(
        "file-not-found", "no package in '{place}'", "compile one: ingot compile FILE"
    ),
    "torch package": Message(
        "file-not-found",
        "'{place}' holds a package of a torch module, not of a model",
        "load it by ingot.train.load(FOLDER) or ingot.regions.load(FOLDER)",
    ),
    "two packages": Message(
        "broken-package", "{folder} holds {files}: which is meant?", "keep that of one package"
    ),
    "unknown package": Message("unknown-name", "there is no package '{name}' in '{place}'"),
    "no json": _broken("{file} is no JSON: {error}"),
    "no format": _broken("{file} describes no package '{form}'"),
    "schema": Message(
        "wrong-schema", "{file} has schema version {found}, this Ingot reads {schema}", "{again}"
    ),
    "layout": _broken("{file}: {error}"),
    "seal": _broken("{file} was changed after it was compiled"),
    "other name": _broken("{file} describes '{name}'"),
    "older": _broken(
        "{folder} is older than what stands beside it: the last compile was not for it, or was"
        " ended before it"
    ),
    "other folder": Message(
        "broken-package",
        "{folder} and {other} beside it differ in their models, precisions or derivatives",
        "{again}; or load the folder that is meant by itself",
    ),
    "other program": Message(
        "broken-package",
        "the package '{name}' for {device} is of another model, precision or other derivatives than"
        " the stub was written for",
        "{again}; or remove 'program' from the stub, which then loads any",
    ),
    "no digest": _broken("the metadata names '{file}', and holds no digest of it"),
    "no name": _broken("the metadata holds a digest of '{file}', which it does not name"),
    "digest": _broken("'{file}' was changed after it was compiled"),
    "contract": _broken("'{file}' was compiled with other metadata than lies beside it"),
    "bad name": _broken("{file} is no name of a file in the folder of the package"),
    "missing file": _broken("'{file}' is missing from {folder}"),
    "link": _broken("'{file}' is a link that leads out of {folder}"),
    "no file": _broken("'{file}' in {folder} is no file"),
    "unreadable file": _broken("'{file}' cannot be read: {error}"),
    "no symbol": Message(
        "broken-package",
        "the library shows no '{name}': it is not the one that the metadata describes",
        "compile the package again",
    ),
    # what it was compiled for
    "other device": Message("wrong-device", "the package runs on {held}, not on {device}"),
    "other devices": Message(
        "wrong-device", "{place} holds a package for {held}, not for '{device}'"
    ),
    "other precision": Message(
        "wrong-dtype", "the package computes in {held}, not in {dtype}",
        "compile with --dtype {dtype}",
    ),
    "no backend": Message(
        "wrong-backend", "the package holds no {backend} backend",
        "compile with --backend {backend}",
    ),
    "other torch": Message(
        "wrong-torch", "the package was compiled by torch {held}, this is {here}", "{again}"
    ),
    "other level": Message(
        "wrong-level",
        "the package holds {held}, this machine runs {here}, and there is no compiler",
        "install g++, or compile the package on a machine like this one",
    ),
    "other architecture": Message(
        "wrong-architecture", "the package holds {held}; '{device}' is sm_{own} ({name})",
        "compile with --cuda-arch {own}",
    ),
    "no driver": Message(
        "no-device", "NVIDIA's driver (libcuda.so.1) is not installed",
        "install it on a machine that has a GPU, or run on the CPU",
    ),
    # calls
    "unknown input": Message("unknown-input", "there is no input '{name}'"),
    "unknown direction": Message("unknown-output", "there is no {word} '{name}'"),
    "missing input": Message("missing-input", "the input '{name}' is missing", "give '{name}'"),
    "missing steps": Message(
        "missing-input", "nothing gives '{name}', which the transient reads at every step",
        "prescribe '{name}': its values of every step",
    ),
    "precision": Message(
        "wrong-dtype", "'{name}' is {dtype}, {who} computes in {held}",
        "convert it to {held}{other}",
    ),
    "device": Message(
        "wrong-device", "'{name}' is on {device}, {who} runs on {held}", "move it to {held}"
    ),
    "shape": Message("wrong-shape", "'{name}' has shape {shape}, expected {wanted}"),
    "steps": Message(
        "wrong-shape", "'{name}' has shape {shape}, the transient has {steps} steps",
        "give it the shape ({steps}, ...)",
    ),
    "no steps": Message(
        "wrong-value", "a transient of {steps} steps: there is one at least, which is given",
        "give as many as the prescribed values have",
    ),
    "batches": Message(
        "batches-differ", "batch shapes {first} and {second} do not broadcast",
        "give every input, and every batched parameter, the same batch shape or none",
    ),
    "not promoted": Message("unknown-parameter", "'{name}' is not promoted"),
    "ambiguous": Message(
        "ambiguous-parameter", "'{name}' may be {found}", "write more of it, such as '{first}'"
    ),
    "twice": Message(
        "wrong-input", "'{first}' and '{second}' are the same parameter", "give one of the two"
    ),
    "no derivatives": Message("no-derivatives", "the package was compiled without {what}"),
    "no pair": Message(
        "no-derivatives", "the pair {output}:{input} was not compiled",
        "compile with {spelled}{remedy}",
    ),
    "rule": Message(
        "wrong-value", "'{name}' should be {allowed}, but is {value}", "give {default}"
    ),
    "no memory": Message(
        "no-memory", "the kernel found no memory for this call", "give it fewer points at a time"
    ),
    "not converged": Message(
        "not-converged", "'{solve}': {failed} of {points} points did not converge; worst is point"
        " {point}{when}, residual {residual} ({reason})",
        "halve the time step, or raise max_its{more}",
    ),
    # stubs
    "no stub file": Message("file-not-found", "there is no file '{file}'"),
    "unknown option": Message("unknown-option", "{title} has no option '{name}'"),
    "no stub": Message(
        "no-stub", "{file} is no stub: it does not hold one model of type AOTIModel alone",
        "name the package's folder, or the stub that was written beside it",
    ),
    "wrong value": Message("wrong-value", "'{name}' should be {expected}, but {verb} {shown}"),
    "no choice": Message("wrong-value", "'{name}' is one of {choices}, not '{word}'"),
    "unknown type": Message("unknown-type", "no {what} '{name}'"),
    "unknown block": Message("unknown-block", "{title} has no sub-block '{name}'"),
    "two ways": Message(
        "wrong-value", "'solver' is for all updates, 'solvers' says which is whose",
        "keep one of the two",
    ),
    "unknown update": Message("unknown-update", "the package has no update '{name}'"),
    "two solvers": Message(
        "wrong-value", "'solvers' names two solvers for '{name}'", "keep one of the two"
    ),
    "missing block": Message("missing-block", "[{section}] has no block '{name}'"),
    "missing option": Message(
        "missing-option", "{title} needs the option '{name}'", "add '{name} = ...'"
    ),
    # what only a caller in C++ can do wrong
    "null": Message(
        "wrong-input", "'{name}' is a null pointer", "give an array, or the shape of none"
    ),
    "negative size": Message(
        "wrong-shape", "'{name}' has shape {shape}, and no size is below zero",
        "give the sizes of its axes",
    ),
    "strides": Message(
        "wrong-shape", "'{name}' has {count} strides and the shape {shape}",
        "give a stride for each axis, or none",
    ),
    "alignment": Message(
        "wrong-input", "'{name}' does not lie where a {dtype} may", "give an aligned pointer"
    ),
    "named twice": Message("wrong-input", "'{name}' is given twice", "give it once"),
    "count": Message(
        "wrong-shape", "'{name}' is given {given} numbers for the shape {shape}",
        "give {wanted} numbers",
    ),
    "overlap": Message(
        "wrong-input", "'{name}' is written where '{other}' lies", "give it memory of its own"
    ),
    "output shape": Message(
        "wrong-shape", "'{name}' has shape {shape}, the call gives {wanted}",
        "give it that shape",
    ),
    "unknown solve": Message("unknown-update", "the package has no solve '{name}'"),
    "too large": Message(
        "wrong-shape", "{points} points are more than memory can hold", "give fewer points"
    ),
    "sums": Message(
        "batch-reduction", "'{name}' sums over points, and C++ computes each point by itself",
        "call it from Python",
    ),
    "no torch": Message(
        "wrong-backend", "the graphs of '{name}' run on libtorch, which this program was built"
        " without",
        "include ingot/torch.h and link libtorch, or compile with --backend kernel",
    ),
    "stub beyond": Message(
        "unresolved-substitution", "{file}:{line}: C++ reads no {what} in a stub",
        "write the value itself, or name the package's folder",
    ),
    "stub syntax": Message(
        "parse-error", "{file}:{line}: {told}", "compile the package again: it writes the stub"
    ),
    "no such device": Message("no-device", "there is no device '{name}': {why}"),
    "no device name": Message("no-device", "'{name}' is no device: there are cpu, cuda"),
    "driver": Message("no-device", "CUDA: {told}", "run it on the CPU, or see to the GPU"),
    "no devices": Message(
        "no-device", "a dispatcher was given no device", "name one or more, such as 'cpu'"
    ),
}  # fmt: skip
"""Every text by its key."""

INCONSISTENT: dict[str, str] = {
    "kind": "'{name}' is of a kind '{kind}' that does not exist",
    "base": "'{name}' has base {base}, a {kind} has {wanted}",
    "size": "'{name}' has {size} numbers, its axes {axes} and {base} do not",
    "value": "the value of '{name}' has shape {shape} and {count} numbers",
    "twice": "the {what} '{name}' is there {count} times",
    "not there": "{where} names '{name}', which is not there",
    "derivative": "a derivative of '{name}'",
    "segment": "the segment '{name}'",
    "outputs": "the list of outputs",
    "implicit": "solvers and implicit segments are not the same",
    "unknowns": "the solver '{name}' has no unknowns",
    "backend": "there is no backend",
    "graphs device": "there are graphs, and the package is for {device}",
    "adjoints": "there are adjoints, and no kernel that gives them",
    "library": "the kernel has no library",
    "header": "a kernel for {device} {has} a header",
    "architecture": "'{name}' is no architecture of a GPU",
    "graphs dtype": "the graphs compute in {dtype}",
    "given names": "the table of given names",
    "graphs inputs": "the graphs take other inputs than the package",
    "graphs outputs": "the graphs give other outputs than the package",
    "graphs": "the graphs",
    "graphs shape": "'{name}' has another shape in the graphs",
    "graphs derivatives": "the graphs have other derivatives than the package",
    "graphs solves": "the graphs have other solves than the package",
    "graphs segment": "a segment of the graphs",
    "a solve": "a solve",
    "solve graph": "the solve '{name}' lacks a graph",
    "solve guess": "the solve '{name}' has not one guess for each unknown",
    "slope": "a derivative of a segment",
    "solve residual": "the solve '{name}' has not one residual for each unknown",
    "residuals": "the residuals of '{name}'",
    "solve derivatives": "the solve '{name}' lacks derivatives of its residuals",
}
"""What metadata can say that does not agree with itself."""


def tell(key: str, span: Span | None = None, /, **values: Any) -> Problem:
    """The problem of that key, which speaks of these values."""
    code, text, fix = MESSAGES[key]
    remedy = None if fix == "{fix}" and values.get("fix") is None else fix.format(**values)
    return Problem(code, text.format(**values), span, remedy)


def refuse(key: str, span: Span | None = None, /, **values: Any) -> IngotError:
    """The error of one such problem."""
    return IngotError([tell(key, span, **values)])


def word(key: str, **values: Any) -> str:
    """What metadata says that does not agree with itself."""
    return INCONSISTENT[key].format(**values)
