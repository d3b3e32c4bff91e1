"""Packages for GPUs without one: their source goes for machine code, and this process runs it."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ingot.execute import kernel_cuda
from tests.codegen.on_host import HostFunction, load_on_host

CAPABILITY = (9, 0)


def write_source_as_code(patch: pytest.MonkeyPatch) -> None:
    """Let a package hold its source in the place of machine code."""

    def translate(source: str, architecture: str) -> bytes:
        return f"// {architecture}\n{source}".encode()

    patch.setattr("ingot.package.translate.compile_cubin", translate)
    patch.setattr("ingot.codegen.nvrtc.require_architectures", lambda architectures: None)


def stand_in(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let this process be the GPU of packages whose machine code is their source."""

    def open_functions(code: bytes, device: torch.device) -> Callable[[str], HostFunction]:
        source = code.decode()
        (prefix,) = re.findall(r"#define INGOT_NAME\(entry\) (\w+)_##entry", source)
        entries = re.findall(r"^INGOT_NAME\((\w+)\)\(const", source, re.MULTILINE)
        return load_on_host(source, [f"{prefix}_{e}" for e in entries], folder).__getitem__

    loader = sys.modules["ingot.runtime.loader"]
    patch.setattr(loader, "open_functions", open_functions)
    patch.setattr(loader, "require_device", lambda name, fix: torch.device("cpu"))
    patch.setattr(torch.cuda, "get_device_capability", lambda device: CAPABILITY)
    patch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
    patch.setattr(kernel_cuda, "raw_stream", lambda index: 0)
