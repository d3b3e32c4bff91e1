"""Where the time of a package of regions on a GPU goes: stacks, timers and processes.

In: a device and how many blocks. Out: for each graph the seconds and torch's own timers, every 30 s
the stacks of parent and child, and the processes that worked. `python -m benchmarks.package_gpu`;
`--device cpu` runs the same without a GPU, `--limit` ends it.
"""

import argparse
import faulthandler
import json
import os
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

STACKS_EVERY = 30.0  # seconds; a graph on a CPU takes some ten
SAMPLES_EVERY = 0.5  # seconds between two looks at the processes
TIMERS = 14  # of torch's timers, the longest


def compile_watched(folder: Path) -> None:
    """What `compile_job` does, with stacks and timers; runs in a child process."""
    from torch._dynamo.utils import compilation_time_metrics

    from ingot.train.compile import compile_job

    place = Path((folder / "watched.txt").read_text())
    compilation_time_metrics.clear()
    begun = time.perf_counter()
    with (place / f"child-{os.getpid()}.stacks").open("a") as stacks:
        faulthandler.dump_traceback_later(STACKS_EVERY, repeat=True, file=stacks)
        try:
            compile_job(folder)
        finally:
            faulthandler.cancel_dump_traceback_later()
    took = {name: sum(seconds) for name, seconds in compilation_time_metrics.items()}
    line = json.dumps({"seconds": time.perf_counter() - begun, "timers": took})
    with (place / "graphs.jsonl").open("a") as graphs:
        graphs.write(f"{line}\n")


class Processes(threading.Thread):
    """Counts for each command how long processes of it below this one were alive."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.alive: dict[str, float] = defaultdict(float)
        self.now: list[str] = []

    def run(self) -> None:
        """Look, wait, look again."""
        while True:
            self.now = below(os.getpid())
            for command in self.now:
                self.alive[command] += SAMPLES_EVERY
            time.sleep(SAMPLES_EVERY)


def below(root: int) -> list[str]:
    """The commands of all processes that a process and those below it have started."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except (OSError, IndexError):
            continue
        commands[int(entry.name)] = " ".join(words)[:70]
    found, left = [], [root]
    while left:
        parent = left.pop()
        children = [pid for pid, of in parents.items() if of == parent and pid in commands]
        found += [commands[pid] for pid in children]
        left += children
    return found


def watch(place: Path) -> None:
    """Let every graph be compiled by `compile_watched`, which is told where to write."""
    from ingot.graphs.child import Children

    run = Children.run

    def watched(self: Children, work: str, folder: Path, what: str, *rest: object) -> object:
        (folder / "watched.txt").write_text(str(place))
        begun = time.perf_counter()
        try:
            return run(self, "benchmarks.package_gpu:compile_watched", folder, what, *rest)
        finally:
            print(f"{what}: {time.perf_counter() - begun:.1f} s", flush=True)

    Children.run = watched


def report(place: Path, processes: Processes, begun: float) -> None:
    """Print what was seen so far."""
    print(f"{time.perf_counter() - begun:.1f} s in all")
    graphs = place / "graphs.jsonl"
    for line in graphs.read_text().splitlines() if graphs.exists() else ():
        row = json.loads(line)
        longest = sorted(row["timers"].items(), key=lambda item: -item[1])[:TIMERS]
        print(f"graph {row['seconds']:.1f} s: " + ", ".join(f"{n} {s:.1f}" for n, s in longest))
    for command, seconds in sorted(processes.alive.items(), key=lambda item: -item[1])[:20]:
        print(f"alive {seconds:6.1f} s  {command}")
    for file in sorted(place.glob("*.stacks")):
        print(f"--- {file.name}\n{file.read_text()[-6000:]}")


def main() -> None:
    """Write a package and tell what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--limit", type=float, default=420.0)
    parser.add_argument("--no-grad", action="store_true")
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="ingot-watched-"))
    begun, processes = time.perf_counter(), Processes()
    processes.start()

    def end() -> None:
        print(f"still at work after {arguments.limit:.0f} s; processes now:")
        print("\n".join(f"  {command}" for command in processes.now))
        report(place, processes, begun)
        os._exit(1)

    timer = threading.Timer(arguments.limit, end)
    timer.daemon = True
    timer.start()
    with (place / "parent.stacks").open("w") as stacks:
        faulthandler.dump_traceback_later(STACKS_EVERY, repeat=True, file=stacks)
        _package(place, arguments)
        faulthandler.cancel_dump_traceback_later()
    timer.cancel()
    report(place, processes, begun)


def _package(place: Path, arguments: argparse.Namespace) -> None:
    import torch

    from benchmarks.regions import build_model
    from ingot import regions

    print(f"torch {torch.__version__}, {os.cpu_count()} cores, {arguments.device}", flush=True)
    watch(place)
    model, block, x = build_model("transformer-64", arguments.blocks, arguments.device)
    folder, grad = place / "package", not arguments.no_grad
    made = regions.compile(model, x, block, mode="aot", output=folder, grad=grad, cuda_graphs=False)
    print(made.report)
    begun = time.perf_counter()
    loaded = regions.load(folder)
    with torch.no_grad():
        difference = (loaded(x) - model(x)).abs().max().item()
    print(f"loaded and called in {time.perf_counter() - begun:.1f} s, differs by {difference:.1e}")


if __name__ == "__main__":
    main()
