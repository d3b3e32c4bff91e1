"""What is printed of published cases compiles to machine code of a GPU, within bounds of memory."""

from pathlib import Path

import pytest

from ingot.codegen.frames import THREADS
from ingot.codegen.nvrtc import compile_cubin, open_nvrtc
from ingot.codegen.source import write_section, write_unit
from ingot.drivers import TransientDriver, build_driver
from ingot.errors import IngotError
from ingot.hit import read
from ingot.program import compile_passes
from tests.codegen.cubin import read_kernels
from tests.gpu.test_kernel import CASES, FILES

MOST_REGISTERS = 255
"""Of a thread: half of a multiprocessor's are for two blocks of 128."""

MOST_STACK = 65_536
"""Bytes of a thread's local memory, of any case: Taylor's model of 8 crystals takes 56 kB."""

QUICK = {"isoharden": 1_270, "chaboche": 5_600, "gurson": 1_590, "zener": 860}
"""Cases that `make test` compiles where NVRTC is installed, and a tenth above what they took."""


@pytest.fixture
def has_nvrtc() -> None:
    try:
        open_nvrtc()
    except IngotError as error:
        pytest.skip(str(error))


def parameters() -> list[object]:
    """Every published transient; those that take long are for the sweep."""
    return [
        pytest.param(
            file, id=str(file.parent.relative_to(CASES)),
            marks=() if file.parent.name in QUICK else pytest.mark.exhaustive,
        )
        for file in FILES
    ]  # fmt: skip


@pytest.mark.parametrize("file", parameters())
def test_a_published_case_compiles_within_bounds(
    file: Path, has_nvrtc: None, tmp_path: Path
) -> None:
    driver = build_driver(read(file), "driver")
    assert isinstance(driver, TransientDriver)
    section = write_section(compile_passes(driver.program), "run", frame=THREADS)
    source = f"#define INGOT_REAL double\n{write_unit([section], THREADS)}"
    code = compile_cubin(source, "sm_90", THREADS.read_headers(), tmp_path)
    kernel = read_kernels(code)["run"]
    assert 0 < kernel["registers"] <= MOST_REGISTERS
    assert kernel["stack"] <= QUICK.get(file.parent.name, MOST_STACK)
