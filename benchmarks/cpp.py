"""A million J2 points from C++ and from Python: `python -m benchmarks.cpp [POINTS]`.

In: `cpp/examples`, built in a clean folder by the commands of docs/cpp.md. Out: seconds of the
build, nanoseconds a point of both in turns, and their ratio.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import ingot
from ingot import compile_model, read
from ingot.package.target import Target

EXAMPLES = Path(__file__).parents[1] / "cpp" / "examples"
ROUNDS = 6


def draw_inputs(points: int) -> dict[str, torch.Tensor]:
    """What the example gives, as it lies there: components outermost, one time for all."""
    zero = torch.zeros(points, dtype=torch.float64)
    strain, plastic = (torch.zeros(6, points, dtype=torch.float64).T for _ in range(2))
    strain[:, 0] = 0.004 * (torch.arange(points) % 1000).double() / 1000
    state = {"equivalent_plastic_strain~1": zero, "flow_rate~1": zero.clone()}
    times = {"t": torch.tensor(1.0).double(), "t~1": torch.tensor(0.0).double()}
    return {"strain": strain, "plastic_strain~1": plastic, **state, **times}


def main(points: int) -> None:
    """Build, then run both in turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin = time.perf_counter()
        target = Target(output_dir=folder / "aoti", derivative=("stress:strain",))
        compile_model(read(EXAMPLES / "j2.i"), "j2", target)
        flags = ["-std=c++17", "-O2", f"-I{EXAMPLES.parent / 'include'}", "-ldl", "-pthread"]
        program = str(folder / "j2")
        subprocess.run(["g++", str(EXAMPLES / "j2.cpp"), "-o", program, *flags], check=True)
        print(f"package and program built in {time.perf_counter() - begin:.1f} s")
        model, inputs = ingot.load(folder / "aoti" / "j2"), draw_inputs(points)
        best = {"C++": float("inf"), "Python": float("inf")}
        for _ in range(ROUNDS):
            command = [program, str(folder / "aoti" / "j2"), str(points)]
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            best["C++"] = min(best["C++"], float(told.split("\n")[1].split()[0]))
            outputs: dict[str, torch.Tensor] = {}  # held as a loop holds them
            with torch.no_grad():
                for _ in range(6):
                    begin = time.perf_counter()
                    outputs |= model(inputs)
                    spent = 1e9 * (time.perf_counter() - begin) / points
                    best["Python"] = min(best["Python"], spent)
    for name, spent in best.items():
        print(f"{name:8} {spent:8.1f} ns a point")
    print(f"ratio    {best['C++'] / best['Python']:8.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
