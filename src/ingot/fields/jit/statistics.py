"""Statistics: what an executor has compiled, found again, and left to run directly."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Statistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts of one run.

    `sequences` are in use, of which `captured` were compiled now and `hits` found in a cache;
    `operations` of torch became `passes` over memory.
    """

    sequences: int = 0
    captured: int = 0
    hits: int = 0
    fallbacks: int = 0
    operations: int = 0
    passes: int = 0
    calls: int = 0

    def __str__(self) -> str:
        parts = [f"{self.sequences} {'sequence' if self.sequences == 1 else 'sequences'}"]
        parts.append(f"{self.hits} cache {'hit' if self.hits == 1 else 'hits'}")
        if self.fallbacks:
            parts.append(f"{self.fallbacks} {'fallback' if self.fallbacks == 1 else 'fallbacks'}")
        parts.append(f"{self.operations} operations in {self.passes} passes")
        return f"JIT: {', '.join(parts)}"
