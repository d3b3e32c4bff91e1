"""What to compile for: one frozen value, built at the edge; the command line is its fields."""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

import torch

from ingot.codegen.architectures import DEFAULT_ARCHITECTURES, read_architecture
from ingot.errors import IngotError, Problem, raise_if
from ingot.keywords import check_keywords
from ingot.options import (
    Count,
    Device,
    Host,
    Inline,
    PackagedBackend,
    Precision,
    find_no_choice,
    fits,
)

__all__ = ["IN_PROCESS", "Target", "spell_option"]

IN_PROCESS = "ingot.compile"
"""The command of what is compiled in this process."""

_FLAGS = {"derivative": "-d", "parameter": "-p", "example_batch_shape": "--example-batch-shape"}
"""The flags of options that take several words."""


def spell_option(command: str, option: str, value: str = "") -> str:
    """An option as a command takes it: a flag, or an argument of `ingot.compile`."""
    if command != IN_PROCESS:
        return f"{_FLAGS.get(option, f'--{option}')} {value}".rstrip()
    if option == "dtype":
        return f"dtype=torch.{value}"
    return f"{option}=('{value}',)" if option in _FLAGS else f"{option}=True"


@check_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How a model is compiled.

    output_dir: where the package and its stub are written
    backend: which backends the package holds
    device: what it runs on, a folder each
    cuda_arch: architectures of GPUs that machine code is written for
    dtype: its precision
    parameter: parameters to promote, by their qualified names
    derivative: pairs OUT:IN; either side may be left out, and then stands for all, promoted too
    train: whether adjoints of all inputs and promoted parameters are compiled, for `vjp`
    example_batch_shape: structural extents, `(2; 12)` for all variables or VAR=(2; 12) for one
    rename_input: inputs to rename, OLD:NEW
    rename_output: outputs to rename, OLD:NEW
    rename_parameter: promoted parameters to rename, OLD:NEW
    c_prefix: what the names of its C functions begin with, if not with the model's name
    umat: whether its library is a user material too: `umat_` and `vumat_`
    umat_host: whose user material: CalculiX asks for other measures at finite strain than Abaqus
    umat_initial: initial values of states, VAR=1 0 0, which are zero otherwise
    inline: which instances of repeated blocks are written out: all, as it pays, or none
    jobs: how many compilers run at once
    stub: whether to write a stub beside the package
    baseline: whether a kernel also has code for CPUs older than this one, and for GPUs newer than
    those asked for
    """

    output_dir: Path = Path("aoti")
    backend: tuple[PackagedBackend, ...] = ("kernel",)
    device: tuple[Device, ...] = ("cpu",)
    cuda_arch: tuple[int, ...] = DEFAULT_ARCHITECTURES
    dtype: Precision = "float64"
    parameter: tuple[str, ...] = ()
    derivative: tuple[str, ...] = ()
    train: bool = False
    example_batch_shape: tuple[str, ...] = ()
    rename_input: tuple[str, ...] = ()
    rename_output: tuple[str, ...] = ()
    rename_parameter: tuple[str, ...] = ()
    c_prefix: str = ""
    umat: bool = False
    umat_host: Host = "abaqus"
    umat_initial: tuple[str, ...] = ()
    inline: Inline = "auto"
    jobs: int = 2
    stub: bool = True
    baseline: bool = True

    def __post_init__(self) -> None:
        """Refuse what compiles nothing; one word stands for a list of one."""
        for each in fields(self):
            if isinstance(each.default, tuple) and isinstance(getattr(self, each.name), str):
                object.__setattr__(self, each.name, (getattr(self, each.name),))
        if not isinstance(self.output_dir, str | os.PathLike):
            message = f"output_dir is {self.output_dir!r}, which names no folder"
            raise IngotError([Problem("wrong-usage", message, None, "give output_dir='aoti'")])
        object.__setattr__(self, "output_dir", Path(self.output_dir))
        raise_if(
            problem
            for name, words, kind in (
                ("backend", self.backend, PackagedBackend), ("device", self.device, Device),
                ("dtype", (self.dtype,), Precision), ("umat_host", (self.umat_host,), Host),
                ("inline", (self.inline,), Inline),
            )
            for word in words
            for problem in find_no_choice(name, word, get_args(kind))
        )  # fmt: skip
        if self.train and "kernel" not in self.backend:
            message = "train compiles adjoints into a kernel, and no kernel is asked for"
            fix = "give --backend kernel inductor, or --backend kernel; in Python backend='kernel'"
            raise IngotError([Problem("wrong-usage", message, None, fix)])
        if (self.umat_initial or self.umat_host != "abaqus") and not self.umat:
            option = "umat_initial" if self.umat_initial else "umat_host"
            message = f"{option} is of a user material, which is not asked for"
            raise IngotError([Problem("wrong-usage", message, None, "give --umat")])
        if self.umat and ("kernel" not in self.backend or "cpu" not in self.device):
            message = "umat is compiled into a kernel for CPUs, and none is asked for"
            fix = "give --backend kernel --device cpu"
            raise IngotError([Problem("wrong-usage", message, None, fix)])
        asked: Any = self.cuda_arch
        asked = (asked,) if isinstance(asked, str | int | float) else asked
        object.__setattr__(self, "cuda_arch", tuple(map(read_architecture, asked)))
        if not self.device or ("cuda" in self.device and not self.cuda_arch):
            message = "no device, or no architecture of a GPU, is asked for"
            fix = "give --device cpu or --device cuda --cuda-arch 90"
            raise IngotError([Problem("wrong-usage", message, None, fix)])
        if "cuda" in self.device and "inductor" in self.backend:
            message = (
                "--backend inductor --device cuda: torch compiles graphs for a GPU on machines that"
                " have one alone, and a package is written on any"
            )
            fix = "compile cuda with --backend kernel, and graphs for cpu by a command of their own"
            raise IngotError([Problem("wrong-backend", message, None, fix)])
        if "cuda" not in self.device and self.cuda_arch != DEFAULT_ARCHITECTURES:
            message = "--cuda-arch names GPUs, and no package for them is asked for"
            raise IngotError([Problem("wrong-usage", message, None, "give --device cpu cuda")])
        if not fits(self.jobs, Count):
            message = f"jobs is {self.jobs!r}, which leaves no compiler to run"
            raise IngotError([Problem("wrong-usage", message, None, "give 1 or more")])

    @property
    def precision(self) -> torch.dtype:
        """The torch name of the precision."""
        return torch.float64 if self.dtype == "float64" else torch.float32
