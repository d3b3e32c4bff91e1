"""The flags that say what a model is compiled for: one dataclass, a flag for each of its fields.

`ingot compile` and `ingot show --stage` take the same ones; both hand them on as a Target. Beside
them, `--load` of all commands that build models, and what commands say about the machine that a
simulation runs on.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ingot.codegen.architectures import DEFAULT_ARCHITECTURES
from ingot.errors import IngotError, Problem, raise_if
from ingot.options import Device, Host, Inline, PackagedBackend, Precision

if TYPE_CHECKING:
    from ingot.hit import Tree
    from ingot.package.target import Target

__all__ = [
    "Flags",
    "Targeted",
    "device_asked",
    "part_overrides",
    "refuse",
    "target_of",
    "tell_code",
    "use_threads",
    "with_laws",
    "wrong_usage",
]

Several = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]
"""Words after one flag, or after each of several; put FILE and MODEL before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What a model is compiled for.

    Parameters
    ----------
    device
        What the package runs on; a folder for each.
    cuda_arch
        Architectures of GPUs, such as 80 90 (or 9.0, or sm_90), that machine code is written for;
        it runs on GPUs of the same major version (8 of 80 and 86) that are as new or newer. PTX of
        the newest serves those yet newer.
    dtype
        Its precision.
    backend
        What the package holds: generated C++, AOT-Inductor graphs, or both.
    parameter
        A parameter to promote, by the name that `ingot show FILE MODEL` prints; several,
        or repeated.
    derivative
        A pair OUT:IN; either side may be left out for all; several, or repeated.
    train
        Compile adjoints of all inputs and promoted parameters too: `vjp`, `param_vjp` and autograd
        then cost a few calls, however many there are.
    example_batch_shape
        Structural extents, (2; 12) for all variables or VAR=(2; 12) for one; may be repeated.
    rename_input
        An input to rename, OLD:NEW; several, or repeated.
    rename_output
        An output to rename, OLD:NEW; several, or repeated.
    rename_parameter
        A promoted parameter to rename, OLD:NEW; several, or repeated.
    c_prefix
        What the names of the C functions begin with, if not with the model's name.
    umat
        Let the library be a user material of Abaqus and its kin too: `umat_`, `vumat_`.
    umat_host
        Whose user material it is: CalculiX asks for other measures at finite strain than Abaqus.
    umat_initial
        The numbers that a state of the user material begins with, if not zeros: VAR="1 0 0"; may be
        repeated.
    inline
        What of repeated blocks is written out for every instance in generated C++: all of it,
        what is faster so, or none of it. Results are the same.
    """

    device: Annotated[tuple[Device, ...], Parameter(consume_multiple=True)] = ("cpu",)
    cuda_arch: Several = tuple(map(str, DEFAULT_ARCHITECTURES))
    dtype: Precision = "float64"
    backend: Annotated[tuple[PackagedBackend, ...], Parameter(consume_multiple=True)] = ("kernel",)
    parameter: Annotated[Several, Parameter(alias="-p")] = ()
    derivative: Annotated[Several, Parameter(alias="-d")] = ()
    train: Annotated[bool, Parameter(negative=())] = False
    example_batch_shape: tuple[str, ...] = ()
    rename_input: Several = ()
    rename_output: Several = ()
    rename_parameter: Several = ()
    c_prefix: str = ""
    umat: Annotated[bool, Parameter(negative=())] = False
    umat_host: Host = "abaqus"
    umat_initial: tuple[str, ...] = ()
    inline: Inline = "auto"


Targeted = Annotated[Flags, Parameter(name="*")]
"""The annotation of a command's argument that takes all flags."""


Loaded = Annotated[
    tuple[Path, ...],
    Parameter(
        help="A Python file of laws, declared by @model, or a preset, TYPE.i, whose names this"
        " command then takes as types: --load laws.py; may be repeated."
    ),
]


def with_laws(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """The command with one more flag, `--load`, whose laws are known while the command runs."""

    @wraps(command)
    def loading(*words: Any, load: tuple[Path, ...] = (), **flags: Any) -> int | None:
        if not load:
            return command(*words, **flags)
        presets = tuple(file for file in load if file.suffix == ".i")
        laws = tuple(file for file in load if file.suffix != ".i")
        if flags.get("untrusted") and laws:
            message = f"'{laws[0]}' of --load is Python, which is not run"
            fix = "leave --untrusted out, or --load"
            raise IngotError([Problem("untrusted-code", message, None, fix)])
        from ingot.catalog import laws_of
        from ingot.hit import presets_of

        with laws_of(laws), presets_of(presets):
            raise_if(_find_taken_types(presets))
            return command(*words, **flags)

    signature = inspect.signature(command)
    flag = inspect.Parameter("load", inspect.Parameter.KEYWORD_ONLY, default=(), annotation=Loaded)
    listed = (*signature.parameters.values(), flag)
    loading.__signature__ = signature.replace(parameters=listed)  # type: ignore[attr-defined]
    return loading


def _find_taken_types(presets: tuple[Path, ...]) -> Iterator[Problem]:
    """A problem for each preset whose name is that of another type."""
    from ingot.catalog import CATALOG
    from ingot.model import ELSEWHERE

    for file in presets:
        if file.stem in CATALOG or any(file.stem in known for known in ELSEWHERE.values()):
            message = f"'{file}' is a preset of the name of another type"
            yield Problem("wrong-preset", message, None, "rename the file")


def target_of(flags: Flags, **more: Any) -> "Target":
    """The target that flags stand for, with what only one command knows."""
    from ingot.package.target import Target

    chosen = {name: getattr(flags, name) for name in Flags.__dataclass_fields__}
    return Target(**chosen, **more)


def part_overrides(flags: Flags, overrides: tuple[str, ...]) -> tuple[Flags, tuple[str, ...]]:
    """The flags without the overrides that stood behind their words: no name holds an `=`."""
    kept: dict[str, tuple[str, ...]] = {}
    for name in ("parameter", "derivative", "rename_input", "rename_output", "rename_parameter"):
        words: tuple[str, ...] = getattr(flags, name)
        kept[name] = tuple(word for word in words if "=" not in word)
        overrides = (*overrides, *(word for word in words if "=" in word))
    return replace(flags, **kept), overrides


def tell_code(tree: "Tree", *, untrusted: bool) -> None:
    """Say on stderr, before it is run, which Python of a file may be; nothing where it is not."""
    from ingot.model.tensors import python_blocks

    blocks = python_blocks(tree)
    if blocks and not untrusted:
        names = ", ".join(blocks)
        print(f"this runs the file's Python: {names}; --untrusted does not", file=sys.stderr)


def wrong_usage(message: str, fix: str) -> IngotError:
    """The error to raise where the words of a command do not go together: exit code 2."""
    return IngotError([Problem("wrong-usage", message, None, fix)])


def device_asked(flag: str | None) -> str:
    """The device that a flag asks for, else the environment, else nothing."""
    return flag or os.environ.get("MARLIN_TORCH_DEVICE", "").strip()


def use_threads(count: int | None) -> None:
    """Let torch use so many threads of the CPU; none leaves it the choice."""
    if count is None:
        return
    if count < 1:
        raise wrong_usage(f"--n-threads {count} leaves no thread to run on", "give 1 or more")
    import torch

    torch.set_num_threads(count)


def refuse(file: Path, what: str, flags: Mapping[str, object]) -> None:
    """A flag without effect is an error."""
    for name, value in flags.items():
        if value is not None:
            message = f"{name} has no meaning for {file}, which is {what}"
            raise wrong_usage(message, f"leave {name} out")
