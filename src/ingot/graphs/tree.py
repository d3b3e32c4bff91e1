"""Nested values -> their leaves and a Tree: data that is compared, saved and filled again."""

import collections
import dataclasses
import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import msgspec

__all__ = ["Tree", "TreeMismatch", "flatten", "leaves_like", "unflatten"]

Kind = Literal["leaf", "tuple", "list", "dict", "namedtuple", "dataclass"]


class TreeMismatch(Exception):
    """A value is not nested as a tree is."""


class Tree(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How values are nested; `type` names a class as module:name, `keys` the entries or fields."""

    kind: Kind = "leaf"
    children: "tuple[Tree, ...]" = ()
    keys: tuple[bool | int | float | str | None, ...] = ()
    type: str = ""

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind == "leaf" else sum(c.leaves for c in self.children)


# classes of this process; where a package is loaded without them a class of the same fields is made
_CLASSES: dict[str, type] = {}


def flatten(value: Any) -> tuple[list[tuple[str, Any]], Tree]:
    """The leaves of a value, each with its path as Python writes it, and how they are nested."""
    kind, keys, entries, type_name = _parts(value)
    if kind == "leaf":
        return [("", value)], Tree()
    leaves: list[tuple[str, Any]] = []
    children: list[Tree] = []
    for key, entry in zip(keys, entries, strict=True):
        step = f".{key}" if kind in ("namedtuple", "dataclass") else f"[{key!r}]"
        inner, tree = flatten(entry)
        leaves += [(step + path, leaf) for path, leaf in inner]
        children.append(tree)
    kept = () if kind in ("tuple", "list") else tuple(keys)
    return leaves, Tree(kind, tuple(children), kept, type_name)


def leaves_like(tree: Tree, value: Any) -> Iterator[Any]:
    """The leaves of a value that is nested as a tree, entries of a dict in whatever order."""
    kind, keys, entries, type_name = _parts(value)
    if tree.kind == "leaf":
        if kind != "leaf":
            raise TreeMismatch
        yield value
        return
    if (kind, type_name, len(keys)) != (tree.kind, tree.type, len(tree.children)):
        raise TreeMismatch
    if kind == "dict":
        if set(keys) != set(tree.keys):
            raise TreeMismatch
        entries = [value[key] for key in tree.keys]
    for child, entry in zip(tree.children, entries, strict=True):
        yield from leaves_like(child, entry)


def unflatten(tree: Tree, leaves: Sequence[Any]) -> Any:
    """The value of a tree and its leaves."""
    return _filled(tree, iter(leaves))


def _filled(tree: Tree, leaves: Iterator[Any]) -> Any:
    if tree.kind == "leaf":
        return next(leaves)
    entries = [_filled(child, leaves) for child in tree.children]
    if tree.kind in ("tuple", "list"):
        return entries if tree.kind == "list" else tuple(entries)
    if tree.kind == "dict":
        return _class(tree)(zip(tree.keys, entries, strict=True))
    if tree.kind == "namedtuple":
        return _class(tree)(*entries)
    made = object.__new__(_class(tree))
    for name, entry in zip(tree.keys, entries, strict=True):
        object.__setattr__(made, str(name), entry)
    return made


def _parts(value: Any) -> tuple[Kind, Sequence[Any], Sequence[Any], str]:
    """Kind, keys, entries and class of a value; a leaf has none."""
    kind = type(value)
    if kind is tuple or kind is list:
        return "tuple" if kind is tuple else "list", range(len(value)), value, ""
    if kind in (dict, collections.OrderedDict):
        name = "" if kind is dict else _named(kind)
        return "dict", list(value), list(value.values()), name
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return "namedtuple", kind._fields, value, _named(kind)
    if dataclasses.is_dataclass(kind) and not isinstance(value, Mapping):
        fields = [f.name for f in dataclasses.fields(kind)]
        if set(getattr(value, "__dict__", fields)) <= set(fields):
            return "dataclass", fields, [getattr(value, f) for f in fields], _named(kind)
    return "leaf", (), (), ""


def _named(kind: type) -> str:
    name = f"{kind.__module__}:{kind.__qualname__}"
    _CLASSES[name] = kind
    return name


def _class(tree: Tree) -> Any:
    if not tree.type:
        return dict
    return _CLASSES.get(tree.type) or _imported(tree.type, tree.kind, tree.keys)


@cache
def _imported(name: str, kind: str, keys: tuple[Any, ...]) -> Any:
    """A class by its name, or one of the same name and fields where its source is not there."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for word in path.split("."):
            found = getattr(found, word)
        return found
    except (ImportError, AttributeError):
        fields, word = [str(k) for k in keys], path.rpartition(".")[2]
        if kind == "namedtuple":
            return collections.namedtuple(word, fields)
        return dataclasses.make_dataclass(word, fields)
