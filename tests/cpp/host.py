"""A C++ program that is asked from Python: packages loaded and called, arrays passed in files."""

import fcntl
import hashlib
import itertools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests import packages

ROOT = Path(__file__).parents[2]
INCLUDE = ROOT / "cpp" / "include"
HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ is here")


@cache
def build(source: str, *flags: str) -> Path:
    """A program of this folder, built by g++ alone, once for all workers of a test run."""
    name = hashlib.sha256(repr((source, flags)).encode()).hexdigest()[:16]
    program = packages.home() / f"cpp-{name}" / "program"
    program.parent.mkdir(exist_ok=True)
    command = ["g++", "-std=c++17", "-O1", *WARNINGS, f"-I{INCLUDE}", str(HERE / source), *flags]
    with (program.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            done = subprocess.run(
                [*command, "-o", str(program), "-ldl", "-pthread"], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr[-3000:]
    return program


class Refused(Exception):
    """What C++ said instead."""


class Host:
    """The driver, running."""

    def __init__(self, program: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ingot-cpp-"))
        self._count = itertools.count()
        self.process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment,
        )  # fmt: skip

    def ask(self, **asked: Any) -> dict[str, Any]:
        """One document there, one back."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read()[-4000:])
        told = json.loads(line)
        if not told["ok"]:
            raise Refused(told["error"])
        return told

    def load(
        self, place: Path | str, *, device: str = "cpu", backend: str = "", dtype: str = "",
        threads: int = 2, rules: Mapping[str, Mapping[str, float]] | None = None,
    ) -> "Loaded":  # fmt: skip
        """A model."""
        key = str(next(self._count))
        told = self.ask(
            do="load", key=key, place=str(place), device=device, backend=backend, dtype=dtype,
            threads=threads, rules=dict(rules or {}),
        )  # fmt: skip
        return Loaded(self, key, told["backend"])

    def close(self) -> None:
        """End it; it must end well."""
        _, told = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, told[-4000:]


class Loaded:
    """A model in C++."""

    def __init__(self, host: Host, key: str, backend: str) -> None:
        self.host, self.key, self.backend = host, key, backend
        self.status: list[dict[str, Any]] = []

    def call(
        self, what: str, inputs: Mapping[str, Any], along: Mapping[str, Any] | None = None,
        params: Sequence[str] = (), steps: int = 0,
    ) -> dict[str, Tensor]:  # fmt: skip
        """The arrays that a call gives; what it takes lies as it lies here."""
        number = next(self.host._count)
        file, to = (self.host.folder / f"{number}{end}" for end in (".in", ".out"))
        content = bytearray()
        given = {n: _lay_out(x, content) for n, x in inputs.items()}
        more = {n: _lay_out(x, content) for n, x in (along or {}).items()}
        file.write_bytes(bytes(content))
        told = self.host.ask(
            do=what, key=self.key, file=str(file), to=str(to), params=list(params), steps=steps,
            inputs=given, along=more,
        )  # fmt: skip
        self.status = told["status"]
        numbers = to.read_bytes()
        found = {n: _read(x, numbers) for n, x in told["arrays"].items()}
        file.unlink(), to.unlink()
        return found


def _lay_out(value: Any, content: bytearray) -> dict[str, Any]:
    """An array's numbers with whatever lies between them, and where they are in the file."""
    if isinstance(value, dict):
        return value  # described by hand
    x = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    x = x.detach()
    reach = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    whole = x.as_strided((reach if x.numel() else 0,), (1,))
    content += b"\0" * (-len(content) % 16)
    offset = len(content)
    content += whole.contiguous().numpy().tobytes()
    kind = str(x.dtype).removeprefix("torch.")
    return {"dtype": kind, "shape": list(x.shape), "strides": list(x.stride()), "offset": offset}


def _read(told: Mapping[str, Any], numbers: bytes) -> Tensor:
    kind = np.dtype(told["dtype"])
    count = int(np.prod(told["shape"]))
    flat = np.frombuffer(numbers, kind, count, told["offset"])
    return torch.from_numpy(flat.reshape(told["shape"]).copy())
