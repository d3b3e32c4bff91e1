"""The modules of a joint: they hold its tensors under the names of the source, in its order.

Tensors may be replaced; an edit that could not reach the compiled graph is refused by name.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

from torch import Tensor, nn

from ingot.errors import IngotError, Problem
from ingot.graphs.torch_private import HOOKS, buffers_of, children_of, non_persistent, parameters_of
from ingot.train.signature import Held, Signature

__all__ = ["Part", "Place", "place_tensors"]

Place = tuple[dict[str, Any], str]
"""A table of a module, and the name in it."""


EDITS = frozenset({"append", "clear", "extend", "insert", "pop", "update"})
"""What lists and dictionaries of modules do besides; nothing of it would reach a compiled graph."""


class Sealed(dict[Any, Any]):
    """A table of a module that is written to no more; `refuse` is told what was tried."""

    def __init__(self, table: Mapping[Any, Any], refuse: Callable[[], NoReturn]) -> None:
        super().__init__(table)
        self.refuse = refuse

    def _refuse(self: Any, *_: Any, **__: Any) -> Any:
        self.refuse()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = update = setdefault = _refuse


class Part(nn.Module):
    """A module that holds tensors of a joint, or the joint itself, whose `path` is empty."""

    own: ClassVar[frozenset[str]] = frozenset({"path", "traced", "training"})

    def __init__(self, path: str, traced: Signature) -> None:
        super().__init__()
        self.path, self.traced = path, traced
        mode = self._mode_of(path)
        if mode is not None:
            self.training = mode

    def train(self, mode: bool = True) -> Any:
        """Keep the modes in which the module was traced; others need another trace."""
        inside = dict.fromkeys(m.path for m in self.modules() if isinstance(m, Part))
        inside |= dict.fromkeys(m for m in self.traced.modes if f"{m}.".startswith(self._prefix))
        for path in inside:
            self._keep_mode(path, mode)
        return super().train(mode)

    def __setattr__(self, name: str, value: Any) -> None:
        parameters, buffers = parameters_of(self), buffers_of(self)
        if name in parameters and isinstance(value, Tensor):
            self.register_parameter(name, value)  # pyright: ignore[reportArgumentType]
        elif name in buffers and isinstance(value, Tensor):
            self.register_buffer(name, value)
        elif name in parameters or name in buffers or not self._may_set(name):
            self._refuse(name, "is set")
        else:
            if name == "training":
                self._keep_mode(self.path, value)
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if any(name in table(self) for table in (parameters_of, buffers_of, children_of)):
            self._refuse(name, "is deleted")
        super().__delattr__(name)

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Replace a parameter that was traced."""
        if name not in parameters_of(self) or not isinstance(param, nn.Parameter):
            self._refuse(name, "is registered")
        parameters_of(self)[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Replace a buffer that was traced."""
        known = name in buffers_of(self) and isinstance(tensor, Tensor)
        if not known or isinstance(tensor, nn.Parameter):
            self._refuse(name, "is registered")
        buffers_of(self)[name] = tensor

    def add_module(self, name: str, module: nn.Module | None) -> None:
        """Refuse: what was traced has no use for another module."""
        self._refuse(name, "is added")

    def __getitem__(self, key: Any) -> Any:
        """A part by its name or number; what holds no tensor is not there."""
        known = children_of(self)
        if isinstance(key, int | str) and str(key) in known:
            return known[str(key)]
        return self._refuse_parts()

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name not in EDITS:
                raise
            return self._refuse_parts

    def __bool__(self) -> bool:
        return True

    def _refuse_parts(self, *_: Any, **__: Any) -> NoReturn:
        who = self.path or self.traced.name
        told = f"'{who}' is no list of modules: parts with tensors are kept, under their names"
        fix = "ask or edit the source module, and trace it once more where it was edited"
        raise IngotError([Problem("traced-part", told, None, fix)])

    __len__ = __iter__ = __contains__ = __setitem__ = __delitem__ = _refuse_parts

    def seal(self) -> None:
        """Refuse from now on what is written into tables past `setattr`."""
        vars(self)["_modules"] = Sealed(children_of(self), self._refuse_parts)

    @property
    def _prefix(self) -> str:
        return f"{self.path}." if self.path else ""

    def _may_set(self, name: str) -> bool:
        # what nn.Module keeps of itself, as j.compile() and hooks of the whole do
        kept = name.startswith("_") and (hasattr(nn.Module, name) or name in vars(self))
        return name in self.own or (kept and not name.startswith("__"))

    def _mode_of(self, path: str) -> bool | None:
        whole = self.traced.training
        return None if whole is None else whole != (path in self.traced.modes)

    def _keep_mode(self, path: str, mode: bool) -> None:
        traced = self._mode_of(path)
        if traced is None or mode == traced:
            return
        name = "training" if traced else "evaluation"
        call = "train()" if mode else "eval()"
        who = path or self.traced.name
        raise IngotError([Problem(
            "wrong-mode", f"'{who}' was traced in {name} mode", None,
            f"call {call} on the source module and trace it once more",
        )])  # fmt: skip

    def _refuse(self, name: str, what: str) -> NoReturn:
        path = self._prefix + name
        known = self.traced.constants.get(path)
        was = "" if known is None else f", where it was {known} when it was traced"
        told = f"'{path}' {what} on '{self.traced.name}', which is compiled and does not read it"
        fix = "edit the source module, and trace it once more"
        raise IngotError([Problem("traced-part", f"{told}{was}", None, fix)])


class Inner(Part):
    """A part below the joint: it is never called, so that hooks on it would not run."""

    def forward(self, *_: Any, **__: Any) -> Any:
        """Refuse: the joint was compiled as a whole."""
        told = f"'{self.path}' of '{self.traced.name}' is called, which was compiled as a whole"
        fix = f"call '{self.path}' of the source module"
        raise IngotError([Problem("traced-part", told, None, fix)])

    def seal(self) -> None:
        """Refuse hooks in the same way."""
        super().seal()
        for name in HOOKS:
            vars(self)[name] = Sealed({}, self._refuse_hook)

    def _refuse_hook(self, *_: Any, **__: Any) -> Any:
        told = f"a hook is set on '{self.path}' of '{self.traced.name}', compiled as a whole"
        fix = "set it on the source module, and trace it once more"
        raise IngotError([Problem("traced-part", told, None, fix)])


def place_tensors(joint: Part, tensors: Mapping[Held, Tensor]) -> list[list[Place]]:
    """Register tensors under all their names, whatever these are; where to find each again."""
    held = {name: one for one in tensors for name in one.names}
    known = [name for name in joint.traced.places if name in held]
    places: dict[str, Place] = {}
    for name in dict.fromkeys([*known, *held]):
        owner, leaf = _find_owner(joint, name)
        table = parameters_of(owner) if held[name].parameter else buffers_of(owner)
        table[leaf] = tensors[held[name]]
        places[name] = table, leaf
        if not held[name].persistent:
            non_persistent(owner).add(leaf)
    for part in [*joint.modules()]:
        if isinstance(part, Part):
            part.seal()
    return [[places[name] for name in one.names] for one in tensors]


def _find_owner(joint: Part, name: str) -> tuple[Part, str]:
    """The part that holds a name, made where it is not yet there, and the last word of it."""
    *path, leaf = name.split(".")
    owner = joint
    for i, word in enumerate(path):
        children = children_of(owner)
        if word not in children:
            children[word] = Inner(".".join(path[: i + 1]), joint.traced)
        owner = children[word]
    return owner, leaf
