"""Names that libraries show: each package's own, so that two in one program run two models."""

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch

from ingot.errors import IngotError
from ingot.execute.kernel_run import open_native_runners
from ingot.hit import read
from ingot.package.header import write_header
from ingot.package.lower import kernel_files
from ingot.package.stages import load
from ingot.package.target import Target
from tests.packages import Made, decay, diffusion, inputs_of, plastic, single

Makes = Callable[[], Made]


def library(one: Made) -> Path:
    """The library of this machine's level."""
    assert one.package.metadata.kernel is not None
    return one.folder / next(iter(one.package.metadata.kernel.libraries.values()))


def prefix(one: Made) -> str:
    """What the names of a package begin with."""
    assert one.package.metadata.kernel is not None
    return one.package.metadata.kernel.prefix


def names(*arguments: str | Path) -> list[str]:
    """The names that nm lists."""
    done = subprocess.run(["nm", *map(str, arguments)], capture_output=True, text=True, check=True)
    return [row.split()[-1] for row in done.stdout.splitlines()]


@pytest.mark.parametrize("package", [decay, diffusion, plastic, single])
def test_a_library_shows_only_names_with_its_prefix(package: Makes) -> None:
    one = package()
    shown = names("-D", "--defined-only", library(one))
    assert f"{prefix(one)}_forward" in shown
    assert [name for name in shown if not name.startswith(f"{prefix(one)}_")] == []


@pytest.mark.parametrize("package", [decay, diffusion, plastic])
def test_a_source_shows_only_such_names_even_unoptimised(package: Makes, tmp_path: Path) -> None:
    one = package()
    assert one.package.metadata.kernel is not None
    source = one.folder / one.package.metadata.kernel.source
    command = ["g++", "-std=c++17", "-O0", "-Wno-psabi", "-fPIC", "-c", str(source), "-o", "x.o"]
    subprocess.run(command, check=True, cwd=tmp_path)
    shown = names("--defined-only", "--extern-only", tmp_path / "x.o")
    # What exceptions refer to is named by every object, and hidden in each.
    own = [name for name in shown if not name.startswith("DW.ref.")]
    assert own and [name for name in own if not name.startswith(f"{prefix(one)}_")] == []


def test_packages_of_one_name_and_other_content_have_other_names() -> None:
    assert decay().package.metadata.name == single().package.metadata.name
    assert prefix(decay()) != prefix(single())
    both = names("-D", "--defined-only", library(decay()))
    assert set(both).isdisjoint(names("-D", "--defined-only", library(single())))


SHOWS = r"""
#include <stdio.h>
#include "HEADER"
void show_PLACE(void);
void show_PLACE(void) {
  static const REAL given[NAME_inputs][64] = {GIVEN};
  static REAL made[NAME_outputs][64];
  const REAL* inputs[NAME_inputs];
  REAL* outputs[NAME_outputs];
  for (int i = 0; i < NAME_inputs; ++i) inputs[i] = given[i];
  for (int i = 0; i < NAME_outputs; ++i) outputs[i] = made[i];
  const int sizes[] = NAME_output_sizes;
  if (NAME_forward(1, inputs, NULL, NULL, outputs, NULL) != 0) printf("failed ");
  for (int i = 0; i < NAME_outputs; ++i)
    for (int k = 0; k < sizes[i]; ++k) printf("%.17g ", (double)made[i][k]);
  printf("\n");
}
"""


def shows(one: Made, place: int, folder: Path) -> str:
    """A C source that calls a package at one point, and prints."""
    meta = one.package.metadata
    inputs = inputs_of(one, 1)
    rows = (", ".join(map(repr, inputs[v.name].flatten().tolist())) for v in meta.inputs)
    source = SHOWS
    for word, text in (
        ("HEADER", str(one.folder / f"{meta.name}.h")),
        ("NAME", meta.name),
        ("PLACE", str(place)),
        ("REAL", "double" if meta.dtype == "float64" else "float"),
        ("GIVEN", ", ".join(f"{{{row}}}" for row in rows)),
    ):
        source = source.replace(word, text)
    (folder / f"show_{place}.c").write_text(source)
    return f"show_{place}.c"


@pytest.mark.parametrize("pair", [(decay, plastic), (decay, single)])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_packages_in_one_program_run_two_models(
    pair: tuple[Makes, Makes], order: tuple[int, int], tmp_path: Path
) -> None:
    ones = [package() for package in pair]
    sources = [shows(one, i, tmp_path) for i, one in enumerate(ones)]
    main = "void show_0(void);\nvoid show_1(void);\nint main(void) { show_0(); show_1(); }\n"
    (tmp_path / "main.c").write_text(main)
    libraries = [str(library(ones[i])) for i in order]
    command = ["gcc", "-std=c99", "-Wall", "-pedantic", "-Werror", "main.c", *sources, *libraries]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./a.out"], cwd=tmp_path, capture_output=True, text=True, check=True)
    for one, row in zip(ones, done.stdout.splitlines(), strict=True):
        with torch.no_grad():
            wanted = torch.cat([x.flatten() for x in one.artifact()(inputs_of(one, 1)).values()])
        assert torch.equal(
            torch.tensor([float(x) for x in row.split()], dtype=wanted.dtype), wanted
        )


def test_two_headers_of_one_name_are_refused(tmp_path: Path) -> None:
    headers = [one.folder / "decay.h" for one in (decay(), single())]
    (tmp_path / "main.c").write_text("".join(f'#include "{h}"\n' for h in headers))
    done = subprocess.run(
        ["gcc", "-c", "main.c"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and "compile one with --c-prefix" in done.stderr


CHILD = """
import ctypes, sys
import torch
from ingot import load, read
from ingot.execute.kernel import Kernel
from ingot.program import freeze, trace
from ingot.model import Factory
from ingot.runtime.loader import metadata_of
from pathlib import Path
folders = sys.argv[1:3]
given = torch.load(sys.argv[3])
metas = [metadata_of(Path(f), "cpu")[0] for f in folders]
opened = [
    ctypes.CDLL(f"{f}/{next(iter(m.kernel.libraries.values()))}", ctypes.RTLD_GLOBAL)
    for f, m in zip(folders, metas)
]
found = []
for folder, meta, library, inputs in zip(folders, metas, opened, given):
    points = 3
    arrays = [inputs[v.name].contiguous() for v in meta.inputs]
    dtype = getattr(torch, meta.dtype)
    made = [torch.empty(points, v.size, dtype=dtype) for v in meta.outputs]
    pointers = lambda xs: (ctypes.c_void_p * len(xs))(*(x.data_ptr() for x in xs))
    forward = getattr(library, f"{meta.kernel.prefix}_forward")
    forward.restype = ctypes.c_int64
    failed = forward(ctypes.c_int64(points), pointers(arrays), None, None, pointers(made), None)
    with torch.no_grad():
        by_python = load(folder)(inputs)
    found.append((failed, [x.flatten() for x in made], [x.flatten() for x in by_python.values()]))
program = trace(Factory(read(sys.argv[5])).model(metas[0].name))
kernel = [x.flatten() for x in Kernel(freeze(program, 2.0**-52))(given[0])[0].values()]
torch.save((found, kernel), sys.argv[4])
"""


@pytest.mark.parametrize("pair", [(decay, plastic), (plastic, decay), (decay, single)])
def test_packages_opened_globally_run_their_own_models(
    pair: tuple[Makes, Makes], tmp_path: Path
) -> None:
    ones = [package() for package in pair]
    inputs = [inputs_of(one, 3) for one in ones]
    torch.save(inputs, tmp_path / "inputs.pt")
    folders = [str(one.folder) for one in ones]
    files = [str(tmp_path / "inputs.pt"), str(tmp_path / "found.pt"), str(ones[0].file)]
    subprocess.run([sys.executable, "-c", CHILD, *folders, *files], check=True)
    found, kernel = torch.load(tmp_path / "found.pt")
    for one, given, (failed, by_c, by_python) in zip(ones, inputs, found, strict=True):
        assert failed == 0
        with torch.no_grad():
            wanted = [x.flatten() for x in one.artifact()(given).values()]
        for x, y, z in zip(wanted, by_c, by_python, strict=True):
            assert torch.equal(x, y) and torch.equal(x, z)
    with torch.no_grad():
        wanted = ones[0].artifact()(inputs[0])
    for x, y in zip(wanted.values(), kernel, strict=True):
        torch.testing.assert_close(x.flatten(), y, rtol=1e-12, atol=1e-15)


def test_packages_of_one_name_meet_in_one_source_under_another_prefix(tmp_path: Path) -> None:
    target = Target(c_prefix="narrow", baseline=False)
    files = kernel_files(load(read(single().file), "decay", target))
    assert files.prefix == "narrow" and files.header == "decay.h"
    narrow = msgspec.structs.replace(files, prefix="narrow_0123456789ab")
    text = write_header(msgspec.structs.replace(single().package.metadata, kernel=narrow))
    (tmp_path / "narrow.h").write_text(text)
    main = f'#include "{decay().folder}/decay.h"\n#include "narrow.h"\n'
    (tmp_path / "main.c").write_text(
        f"{main}int main(void) {{ return decay_inputs - narrow_inputs; }}\n"
    )
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-c", "main.c"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_metadata_of_another_library_is_refused() -> None:
    meta = decay().package.metadata
    assert meta.kernel is not None
    with pytest.raises(IngotError, match=r"broken-package.*shows no 'decay_"):
        open_native_runners(ctypes.CDLL(str(library(single()))), meta.kernel.prefix)


@pytest.mark.parametrize("prefix", ["1st", "a-b", "é", "_x"])
def test_a_prefix_that_c_has_not_is_refused(prefix: str) -> None:
    tree = read(decay().file)
    with pytest.raises(IngotError, match="--c-prefix"):
        load(tree, "decay", Target(c_prefix=prefix))
