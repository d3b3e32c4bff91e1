"""How often a command reads its file, and builds what the file describes."""

from collections import Counter
from pathlib import Path
from typing import Any

import nmhit
import pytest

from ingot.model import Factory, Tensors

__all__ = ["count_reading"]


def count_reading(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts of the names of `.i` files that are read, and of factories and tensors built."""
    counts: Counter[str] = Counter()

    def count(owner: Any, name: str, key: Any) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            counts.update(key(*arguments))
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, call)

    count(Path, "read_bytes", lambda path: [path.name] if path.suffix == ".i" else [])
    count(nmhit, "parse_file", lambda path: [Path(path).name])
    count(Factory, "__init__", lambda *_: ["Factory"])
    count(Tensors, "__init__", lambda *_: ["Tensors"])
    return counts
