"""Nested values -> their leaves and a Tree: data that is compared, saved and filled again."""

import collections
import dataclasses
import enum
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import msgspec

__all__ = [
    "Tree", "TreeMismatch", "flatten", "has_order", "leaves_like", "reorder", "set_free",
    "unflatten",
]  # fmt: skip

PLAIN = (bool, int, float, str, type(None))
"""What a graph takes as it is, and a package holds; of what only derives from these it would lose
the type.
"""

Kind = Literal["leaf", "tuple", "list", "dict", "namedtuple", "dataclass", "enum"]


_WORDS = {"leaf": "tensor or plain value", "tuple": "tuple", "list": "list", "dict": "dict"}


class TreeMismatch(Exception):
    """A value is not nested as a tree is: the path of the part that is not, and how."""

    def __init__(self, path: str, told: str) -> None:
        super().__init__(path, told)
        self.path, self.told = path, told


class Tree(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How values are nested; `type` names a class as module:name, `keys` the entries or fields.

    free: whether entries of a dict may come in another order.
    """

    kind: Kind = "leaf"
    children: "tuple[Tree, ...]" = ()
    keys: tuple[bool | int | float | str | None, ...] = ()
    type: str = ""
    free: bool = False


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
        inner, tree = flatten(entry)
        step = _step(kind, key)
        leaves += [(step + path, leaf) for path, leaf in inner]
        children.append(tree)
    kept = () if kind in ("tuple", "list") else tuple(keys)
    return leaves, Tree(kind, tuple(children), kept, type_name)


def leaves_like(tree: Tree, value: Any) -> list[Any]:
    """The leaves of a value that is nested as a tree, in the order of the tree."""
    if tree.kind == "leaf" and _parts(value)[0] == "leaf":
        return [value]
    leaves: list[Any] = []
    for key, child, entry in _match(tree, value):
        try:
            leaves += leaves_like(child, entry)
        except TreeMismatch as error:
            raise TreeMismatch(_step(tree.kind, key) + error.path, error.told) from None
    return leaves


def _match(tree: Tree, value: Any) -> Iterator[tuple[Any, Tree, Any]]:
    """The entries of a value, each with its key and what it is in the tree."""
    kind, keys, entries, type_name = _parts(value)
    if (kind, type_name) != (tree.kind, tree.type):
        wanted = tree.type.rpartition(":")[2] or _WORDS[tree.kind]
        raise TreeMismatch("", f"is a {type(value).__name__}; it was traced as a {wanted}")
    if kind == "dict":
        if not (set(keys) == set(tree.keys) if tree.free else tuple(keys) == tree.keys):
            given, known = (", ".join(map(repr, names)) or "none" for names in (keys, tree.keys))
            order = " in this order" if set(keys) == set(tree.keys) else ""
            raise TreeMismatch("", f"has the entries {given}{order}; it was traced with {known}")
        keys, entries = tree.keys, [value[key] for key in tree.keys]
    if len(keys) != len(tree.children):
        told = f"has {len(keys)} entries; it was traced with {len(tree.children)}"
        raise TreeMismatch("", told)
    return zip(keys, tree.children, entries, strict=True)


def _step(kind: Kind, key: Any) -> str:
    """The way from a value to one of its entries, as Python writes it."""
    return f".{key}" if kind in ("namedtuple", "dataclass", "enum") else f"[{key!r}]"


def has_order(tree: Tree) -> bool:
    """Whether there are entries of a dict that could come in another order."""
    return (tree.kind == "dict" and len(tree.keys) > 1) or any(map(has_order, tree.children))


def set_free(tree: Tree) -> Tree:
    """The same, with entries in whatever order."""
    return msgspec.structs.replace(tree, children=tuple(map(set_free, tree.children)), free=True)


def reorder(value: Any, turn: Callable[[list[Any]], list[Any]]) -> Any:
    """The same value with the entries of all dicts in another order."""
    kind, keys, entries, type_name = _parts(value)
    if kind == "leaf":
        return value
    inner = [reorder(entry, turn) for entry in entries]
    if kind == "dict":
        return type(value)(turn([*zip(keys, inner, strict=True)]))
    tree = Tree(kind, (Tree(),) * len(inner), tuple(keys), type_name)
    return unflatten(tree, inner)


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
    if tree.kind in ("namedtuple", "enum"):
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
    if isinstance(value, enum.Enum) and type(value.value) in PLAIN:
        return "enum", ("value",), (value.value,), _named(kind)
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
    """A class by its name, or one of the same name and fields where its source is not there.

    Of a member of an enumeration its value is left then.
    """
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for word in path.split("."):
            found = getattr(found, word)
        return found
    except (ImportError, AttributeError):
        if kind == "enum":
            return lambda value: value
        fields, word = [str(k) for k in keys], path.rpartition(".")[2]
        if kind == "namedtuple":
            return collections.namedtuple(word, fields)
        return dataclasses.make_dataclass(word, fields)
