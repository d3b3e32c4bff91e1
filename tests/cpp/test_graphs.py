"""Packages of graphs in C++, on the libtorch of the installed torch, agree with Python to 1e-12."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests import packages
from tests.cpp.host import Host, Refused, build, needs_compiler
from tests.cpp.test_same import close, flat, quiet
from tests.packages import Made, inputs_of

TORCH = Path(torch.__file__).parent
pytestmark = [needs_compiler, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    if not (TORCH / "include" / "ATen" / "ATen.h").exists():
        pytest.skip("this torch comes without its headers")
    includes = (f"-isystem{TORCH}/include", f"-isystem{TORCH}/include/torch/csrc/api/include")
    links = (f"-L{TORCH}/lib", f"-Wl,-rpath,{TORCH}/lib", "-ltorch", "-ltorch_cpu", "-lc10")
    flags = ("-DTORCH", "-O0", "-Wno-error", *includes, *links)
    running = Host(build("driver.cpp", *flags))
    yield running
    running.close()


@pytest.mark.parametrize("name", ["elastic", "decay", "two_updates", "diffusion"])
def test_graphs_agree(host: Host, name: str) -> None:
    made: Made = getattr(packages, name)()
    artifact, model = made.artifact("inductor"), host.load(made.folder, backend="inductor")
    assert model.backend == "inductor"
    inputs: dict[str, Tensor] = packages.TWO_INPUTS if name == "two_updates" else inputs_of(made, 5)
    theirs = quiet(lambda: artifact(inputs))
    mine = model.call("forward", inputs)
    assert list(mine) == list(theirs)
    assert all(close(mine[n], x, 1e-12) for n, x in theirs.items())
    for told, status in zip(model.status, artifact.status, strict=True):
        assert told["reason"] == status.reason.tolist()
        assert told["iterations"] == status.iterations.tolist()
    if artifact.metadata.derivatives:
        theirs = flat(quiet(lambda: artifact.jacobian(inputs)))
        mine = model.call("jacobian", inputs)
        assert all(close(mine[n], x, 1e-12) for n, x in theirs.items())


def test_graphs_of_another_torch_are_refused(host: Host, tmp_path: Path) -> None:
    made = packages.decay()
    folder = tmp_path / "cpu"
    shutil.copytree(made.folder, folder)
    from tests.cpp.test_words import set_at

    set_at("torch_version", "9.9")(folder)
    with pytest.raises(Refused, match=r"compiled by torch 9\.9, this is"):
        host.load(folder, backend="inductor")
