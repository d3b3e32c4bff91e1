"""Calls that do not fit a public function, told as problems: what is there, and what is nearest.

In: a function or a class. Out: the same, whose wrong calls raise an IngotError instead of Python's.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter
from typing import Any, TypeVar

from ingot.errors import IngotError, Problem, caller, did_you_mean, is_own

__all__ = ["check_keywords", "find_misfits"]

_OPEN = {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}
"""What takes any number of arguments."""

Called = TypeVar("Called", bound=Callable[..., Any])


def check_keywords(called: Called) -> Called:
    """The function, or the class with its public methods, whose calls are told if they do not fit.

    Nothing is examined before Python has refused the call.
    """
    owner: Any = called
    if not isinstance(owner, type):
        return _check(called)
    for name, method in list(vars(owner).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if inspect.isfunction(method):
            setattr(owner, name, _check(method))
        elif isinstance(method, staticmethod | classmethod):
            setattr(owner, name, type(method)(_check(method.__func__)))
    return called


def _check(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except (AttributeError, TypeError) as error:
            # calls of our own that do not fit are bugs, and stay what they are
            if isinstance(error, IngotError) or is_own(sys._getframe(1)):
                raise
            step = error.__traceback__
            has_begun = step is None or step.tb_next is not None
            find = find_wrong_kinds if has_begun else find_misfits
            problems = [*find(function, args, named)]
            if not problems:
                raise
        raise IngotError(problems)

    return call


def find_misfits(
    function: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> Iterator[Problem]:
    """A problem for each argument that is not there, given twice, missing or one too many."""
    slots = [*inspect.signature(function).parameters.values()]
    owner = None
    if slots and slots[0].name in ("self", "cls"):
        owner, args, slots = args[0], args[1:], slots[1:]
    of_instance = getattr(owner, "__signature__", None)  # what the options of a law are
    if isinstance(of_instance, inspect.Signature):
        slots = [*of_instance.parameters.values()]
    open_kinds = {p.kind for p in slots} & _OPEN
    own = {p.name: p for p in slots if p.kind not in open_kinds}
    by_place = [p.name for p in own.values() if p.kind is not Parameter.KEYWORD_ONLY]
    title, span, placed = _name_call(function, owner), caller(), by_place[: len(args)]
    free = [n for n in own if n not in (*placed, *named)]
    needed = [n for n in free if own[n].default is Parameter.empty]
    unknown = [n for n in named if n not in own]
    meant = {n: did_you_mean(n, free) for n in unknown}
    if Parameter.VAR_KEYWORD in open_kinds:
        unknown = [n for n in unknown if did_you_mean(n, needed)]
    if "inputs" in needed and not any(meant.values()):
        names = unknown or [*getattr(owner, "inputs", ("name",))]
        each = ", ".join(f'"{name}": ...' for name in names)
        written = ", ".join([f"{{{each}}}", *(n for n in needed if n != "inputs")])
        told = f"{title} is called with one dictionary, its inputs by name"
        yield Problem("wrong-input", told, span, f"write {title}({written})")
        return
    if len(args) > len(by_place) and Parameter.VAR_POSITIONAL not in open_kinds:
        count = f"{len(args)} argument{'s' * (len(args) > 1)}"
        told = f"{title} is given {count} by place, and takes {len(by_place) or 'none'} so"
        others = ", ".join(f"{n}=..." for n in needed or free)
        yield Problem(
            "wrong-input", told, span, f"give by name: {others}" if others else "give fewer"
        )
        needed = []
    for name in unknown:
        fix = meant[name] or (f"choose one of: {', '.join(own)}" if own else "leave it out")
        yield Problem("unknown-option", f"{title} has no argument '{name}'", span, fix)
    for name in (n for n in needed if did_you_mean(n, [n]) not in meant.values()):
        told = f"{title} needs the argument '{name}'"
        yield Problem("missing-option", told, span, f"give {name}=...")
    for name in (n for n in named if n in placed):
        fix = f'give inputs={{"{name}": ...}}' if "inputs" in own else f"leave {name}= out"
        told = f"'{name}' of {title} is given by its place and by its name"
        yield Problem("wrong-input", told, span, fix)


KINDS = {
    "Tree": "what ingot.read returns",
    "Factory": "ingot.Factory(tree)",
    "Model": "what a law of ingot.laws, compose or implicit returns",
    "TransientDriver": "what ingot.transient or ingot.build_driver returns",
    "Artifact": "what ingot.load or ingot.compile returns",
    "Program": "what ingot.prepared returns",
    "Target": "ingot.package.target.Target(...)",
    "Path": "the path of a file",
    "str": "a string",
}
"""Classes that arguments are of, by name, and where each comes from."""


def find_wrong_kinds(
    function: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> Iterator[Problem]:
    """A problem for each argument that is not of its class, once a call of it has failed.

    Classes are compared by name: annotations may be of what is not imported.
    """
    signature = inspect.signature(function)
    given = signature.bind(*args, **named).arguments
    owner = given.pop("self", given.pop("cls", None))
    for name, value in given.items():
        kind = signature.parameters[name].annotation
        if signature.parameters[name].kind in _OPEN:
            continue
        text = kind.__name__ if isinstance(kind, type) else str(kind).strip("'")
        words = {each.rpartition(".")[2] for each in text.split(" | ")}
        own = {each.__name__ for each in type(value).__mro__}
        if value is not None and words <= {*KINDS, "None"} and not words & own:
            wanted = [word for word in KINDS if word in words]
            shown = repr(value) if isinstance(value, str | int | float) else type(value).__name__
            told = f"'{name}' of {_name_call(function, owner)} should be a {' or a '.join(wanted)}"
            fix = f"give {KINDS[wanted[0]]}"
            yield Problem("wrong-value", f"{told}, not {shown}", caller(), fix)


def _name_call(function: Any, owner: Any) -> str:
    """What a user calls: a function, a class, a model or a method of one."""
    name = function.__name__
    if name == "__init__":
        return type(owner).__name__
    if owner is None:
        return name
    title = getattr(owner, "__name__", type(owner).__name__.lower().strip("_"))
    return title if name in ("__call__", "forward") else f"{title}.{name}"
