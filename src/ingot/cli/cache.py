"""`ingot cache`: what was compiled and is kept for the next time."""

import json as jsonlib
import time

from cyclopts import App

__all__ = ["cache"]

cache = App(
    name="cache",
    help="""List or clear what was compiled and is kept: kernels, graphs, sequences, CUDA code.

    Example: ingot cache list""",
)


@cache.command(name="list")
def list_entries(*, json: bool = False) -> None:
    """Print where the cache lies and what it holds, the entry that was used last first.

    Example: ingot cache list --json

    Parameters
    ----------
    json
        Print the entries as JSON.
    """
    from ingot.codegen.cache import open_cache

    kept = open_cache()
    entries = kept.entries()
    size = sum(entry.size for entry in entries)
    if json:
        rows = [
            {"kind": e.kind, "key": e.key, "bytes": e.size, "used": _moment(e.used)}
            for e in entries
        ]  # fmt: skip
        head = {"place": str(kept.folder), "bytes": size, "limit": kept.limit}
        print(jsonlib.dumps({**head, "entries": rows}))
        return
    for e in entries:
        print(f"{e.kind:<8}  {e.key}  {e.size / 2**20:8.2f} MiB  {_moment(e.used)}")
    print(f"{kept.folder}: {_counted(len(entries), size)}, of {kept.limit / 2**20:.0f} MiB at most")


@cache.command
def clear(*, json: bool = False) -> None:
    """Remove all that is kept; what is needed again is compiled again.

    Example: ingot cache clear

    Parameters
    ----------
    json
        Print what was removed as JSON.
    """
    from ingot.codegen.cache import open_cache

    kept = open_cache()
    before = {(e.kind, e.key): e.size for e in kept.entries()}
    kept.clear()
    left = {(e.kind, e.key) for e in kept.entries()}
    gone = [size for name, size in before.items() if name not in left]
    if json:
        told = {"place": str(kept.folder), "removed": len(gone), "bytes": sum(gone)}
        print(jsonlib.dumps(told))
        return
    print(f"{kept.folder}: removed {_counted(len(gone), sum(gone))}")


def _counted(count: int, size: int) -> str:
    return f"{count} {'entry' if count == 1 else 'entries'}, {size / 2**20:.2f} MiB"


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))
