"""C++ programs built by g++ alone: wrong calls, threads, many packages, examples; sanitizers."""

import json
import math
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from ingot import compile_model, load, read
from ingot.package.seal import digest_of, seal
from ingot.package.target import Target
from tests import packages
from tests.cpp.host import INCLUDE, ROOT, Host, build, needs_compiler
from tests.pages import find_blocks

pytestmark = needs_compiler
ADDRESS = ("-g", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
THREAD = ("-g", "-O0", "-fsanitize=thread")
EXAMPLES = ROOT / "cpp" / "examples"


def ran(program: Path, *words: object) -> str:
    done = subprocess.run(
        [str(program), *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-4000:]
    return done.stdout


def spent_by_children() -> float:
    """Seconds of processors that processes begun here have taken, those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("calls, flags", [
    (500, ()), pytest.param(5000, ADDRESS, marks=pytest.mark.exhaustive),
], ids=["few", "watched"])  # fmt: skip
@pytest.mark.parametrize("name", ["plastic", "trained"])
def test_wrong_calls_end_in_our_errors(name: str, calls: int, flags: tuple[str, ...]) -> None:
    """Thousands of calls of two models, in the sweep watched for bad addresses and undefined
    behaviour, which takes g++ half a minute to build.
    """
    folder = getattr(packages, name)().folder
    told = ran(build("campaign.cpp", *flags), folder, calls, 11)
    refused, fine = (int(word) for word in told.replace(",", "").split() if word.isdigit())
    assert refused > 0.4 * calls and fine > 0.06 * calls


@pytest.mark.exhaustive
@pytest.mark.parametrize("flags", [ADDRESS, THREAD], ids=["address", "thread"])
def test_threads_share_models_and_devices(flags: tuple[str, ...]) -> None:
    folders = [made().folder for made in (packages.plastic, packages.trained)]
    assert ran(build("threads.cpp", *flags), *folders) == "0 wrong\n"


@pytest.mark.exhaustive
def test_two_hundred_packages_in_one_process(tmp_path: Path) -> None:
    """Copies of one, each with a library of other bytes, which is mapped by itself."""
    host = Host(build("driver.cpp"))
    made = packages.trained()
    inputs = packages.inputs_of(made, 3)
    with torch.no_grad():
        right = made.artifact()(inputs)
    (name,) = (path.name for path in made.folder.glob("*_meta.json"))
    meta = json.loads((made.folder / name).read_bytes())
    models = []
    for i in range(200):
        folder = tmp_path / str(i)
        shutil.copytree(made.folder, folder)
        for file in folder.glob("*.so"):
            with file.open("ab") as end:
                end.write(i.to_bytes(4, "little"))
            meta["digests"][file.name] = digest_of(file)
        (folder / name).write_bytes(seal(json.dumps(meta, indent=1).encode()))
        models.append(host.load(folder, threads=1 + i % 3))
    for model in models:
        found = model.call("forward", inputs)
        assert all(torch.equal(found[n], x) for n, x in right.items())
    host.close()


def blocks_of_page(reason: str) -> list[str]:
    """The blocks of C++ of its page that are not run for a reason."""
    blocks = find_blocks((ROOT / "docs" / "cpp.md").read_text())
    return [b.body for b in blocks if b.language == "cpp" and b.norun == reason]


def write_page(folder: Path) -> Path:
    """The program that the parts on the page are."""
    parts = blocks_of_page("a part of a program; tests/cpp builds it")
    assert len(parts) == 4
    rows = "\n".join(parts).splitlines()
    head = [row for row in rows if row.startswith("#include")]
    body = [row for row in rows if not row.startswith("#include")]
    file = folder / "page.cpp"
    head += ["#include <stdexcept>", "int main() {"]
    file.write_text("\n".join([*head, *body, "return int(stress[0] < 0);", "}", ""]))
    return file


def test_what_the_page_shows_is_c_plus_plus(tmp_path: Path) -> None:
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{INCLUDE}", str(write_page(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_page_declares_what_the_headers_do() -> None:
    """Each function and structure, but for comments and the names of namespaces."""
    (block,) = blocks_of_page("declarations of the headers; tests/cpp finds each there")

    def squeeze(text: str) -> str:
        return " ".join(re.sub(r"//.*", "", text).split())

    headers = [
        squeeze((INCLUDE / "ingot" / name).read_text()) for name in ("model.h", "metadata.h")
    ]
    declared = re.split(r"(?<=;)\n+(?=[^\s}])", block.strip())
    assert len(declared) > 14
    for each in declared:
        wanted = squeeze(each).removesuffix(";")
        assert any(wanted in text for text in headers), each


@pytest.mark.exhaustive
def test_the_example_builds_from_a_clean_folder_and_agrees(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "j2.i", tmp_path)
    target = Target(output_dir=tmp_path / "aoti", derivative=("stress:strain",))
    compile_model(read(tmp_path / "j2.i"), "j2", target)
    begin = spent_by_children()
    flags = ["-std=c++17", "-O2", f"-I{INCLUDE}", "-ldl", "-pthread"]
    for name in ("j2", "moose"):
        command = ["g++", str(EXAMPLES / f"{name}.cpp"), "-o", str(tmp_path / name), *flags]
        subprocess.run(command, check=True)
    assert spent_by_children() - begin < 60
    page = ["g++", str(write_page(tmp_path)), "-o", str(tmp_path / "page"), *flags]
    subprocess.run(page, check=True)
    done = subprocess.run([str(tmp_path / "page")], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = ran(tmp_path / "j2", tmp_path / "aoti" / "j2", 5000)
    artifact = load(tmp_path / "aoti" / "j2")
    whole = torch.zeros(5000, 6, dtype=torch.float64)
    whole[:, 0] = 0.004 * (torch.arange(5000) % 1000).double() / 1000
    zero = torch.zeros(5000, dtype=torch.float64)
    state = {"equivalent_plastic_strain~1": zero, "flow_rate~1": zero, "t": zero + 1, "t~1": zero}
    given = {"strain": whole, "plastic_strain~1": torch.zeros_like(whole), **state}
    stress = float(artifact(given)["stress"][-1, 0])
    assert told.splitlines()[0] == f"stress of the last point: {stress:.6f}"
    told = ran(tmp_path / "moose", tmp_path / "aoti" / "j2", 5)
    axial = float(told.splitlines()[0].rpartition(" ")[2])
    # rate-independent hardening is path-independent in tension: s = 200 + 80 (1 - exp(-40 p))
    p = 0.01 - axial / 200000
    assert axial == pytest.approx(200 + 80 * (1 - math.exp(-40 * p)), rel=2e-3)


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake is here")
def test_cmake_and_pkg_config_find_the_headers(tmp_path: Path) -> None:
    def cmake(*words: object) -> None:
        done = subprocess.run(
            ["cmake", *map(str, words)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    cpp = EXAMPLES.parent
    cmake("-S", EXAMPLES, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={cpp}")
    cmake("--build", tmp_path / "build", "--target", "j2")
    assert (tmp_path / "build" / "j2").exists()
    place = tmp_path / "installed"
    cmake("-S", cpp, "-B", tmp_path / "own", f"-DCMAKE_INSTALL_PREFIX={place}")
    cmake("--install", tmp_path / "own")
    cmake("-S", EXAMPLES, "-B", tmp_path / "again", f"-DCMAKE_PREFIX_PATH={place}")
    if shutil.which("pkg-config"):
        (file,) = place.rglob("ingot.pc")
        told = subprocess.run(
            ["pkg-config", "--cflags", "ingot"], env={"PKG_CONFIG_PATH": str(file.parent)},
            executable=shutil.which("pkg-config"), capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert f"-I{place}/include" in told.stdout
