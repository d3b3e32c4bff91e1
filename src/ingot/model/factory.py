"""Tree -> Model: blocks of the catalogue become laws with names, parameters and options."""

import copy
import importlib
import weakref
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, cast

from ingot.catalog import CATALOG, Declared, load
from ingot.catalog.declare import wrong_law
from ingot.errors import IngotError, Problem, Span, did_you_mean, raise_if, warn_of
from ingot.hit import Block, Field, Tree, list_presets
from ingot.keywords import check_keywords
from ingot.model.binder import Holder, bind_law, find_no_name, find_unknown, read_constant
from ingot.model.given import Given, GivenField, give
from ingot.model.model import DataTensors, Model
from ingot.model.settings import Settings, settings
from ingot.model.tensors import Tensors
from ingot.model.untrusted import untrusted_code

__all__ = ["ELSEWHERE", "Factory", "bind", "build", "locate", "python_factory"]

ELSEWHERE: dict[str, dict[str, str]] = {
    "Models": {
        "ComposedModel": "ingot.program.combinators",
        "ImplicitUpdate": "ingot.program.combinators",
        "Normality": "ingot.program.combinators",
        "LogarithmicStrain": "ingot.program.finite_strain",
        "ConstantExtrapolationPredictor": "ingot.program.predictors",
        "CoordinateDescentPredictor": "ingot.program.predictors",
        "LinearExtrapolationPredictor": "ingot.program.predictors",
        "RateCondensation": "ingot.program.predictors",
        "SR2DynamicMean": "ingot.program.reductions",
        "SR2DynamicSum": "ingot.program.reductions",
        "SR2IntermediateDiff": "ingot.program.intermediate",
        "SR2IntermediateMean": "ingot.program.intermediate",
        "SR2IntermediateSum": "ingot.program.intermediate",
        "AOTIModel": "ingot.runtime.stub",
    },
    "Data": {
        "CubicCrystal": "ingot.catalog.crystal",
    },
    "Drivers": {
        "TransientDriver": "ingot.drivers.transient",
        "TransientRegression": "ingot.drivers.regression",
        "ModelUnitTest": "ingot.drivers.unit_test",
        "Verification": "ingot.drivers.verification",
    },
}
"""Where types live that are not laws, by section: rooms that may not be imported from here."""

SECTIONS = ("Settings", "Tensors", "Data", "Models", "EquationSystems", "Solvers", "Drivers")


@check_keywords
def build(tree: Tree, name: str, *, untrusted: bool = False) -> Model:
    """The model called `name`, with everything it refers to; `untrusted` as a Factory takes it."""
    factory = Factory(tree, untrusted=untrusted)
    model = factory.model(name)
    model.shapes = factory.settings.extents(model)
    return model


def bind(
    kind: Declared | str, values: Mapping[str, Any], span: Span | None, name: str | None = None
) -> Model:
    """The model of a law, or of a type that is none, whose options are Python values.

    span: where they were given; name: what the model is called, as its type unless told.
    """
    title = kind if isinstance(kind, str) else kind.name
    law = CATALOG.get(kind) if isinstance(kind, str) else kind
    return python_factory().make(give(title, values, span, name), law)


@cache
def python_factory() -> "Factory":
    """What makes the objects that Python describes: it has no file."""
    return Factory(Tree((), ()))


@check_keywords
class Factory:
    """Builds the objects of one file, each once, when first referred to.

    strict: what is warned of is an error, as it is where the file's [Settings] say so; untrusted:
    Python of the file is evaluated within bounds, and nothing else that it names is executed; stop:
    the rule of that name, of solvers that do not say it; device: what drivers run kernels on.
    """

    stop: str = "point"
    device: str = "cpu"

    def __init__(self, tree: Tree, *, strict: bool = False, untrusted: bool = False) -> None:
        load()
        self.tree = tree
        self._strict = strict
        self.untrusted = untrusted
        self.tensors = Tensors(tree, untrusted=untrusted)
        self._made: dict[tuple[str, str], Any] = {}
        self._open: list[tuple[str, str]] = []
        # alive as long as a model holds them, and with them the objects whose ids are keys
        self._held: weakref.WeakValueDictionary[int, DataTensors] = weakref.WeakValueDictionary()
        self._resolved: dict[int, tuple[Field, Any]] = {}
        self._records: dict[int, Given] = {}
        if tree.doubts:
            warn_of(tree.doubts, strict=self.strict)

    def renew(self, *, stop: str) -> "Factory":
        """A factory of the same file that builds its objects anew, by another rule."""
        other = copy.copy(self)
        other._made, other._open, other.stop = {}, [], stop
        other._resolved, other._records = {}, {}
        return other

    @cached_property
    def settings(self) -> Settings:
        """What the file's [Settings] declare."""
        return settings(self.tree)

    @property
    def strict(self) -> bool:
        """Whether what is warned of is an error."""
        return self._strict or self.settings.strict

    def model(self, name: str, asked: Span | None = None) -> Model:
        """The model of a `[Models]` block."""
        return self._get("Models", name, asked, self._model)

    def data(self, name: str, asked: Span | None = None) -> Any:
        """The object of a `[Data]` block."""
        return self._get("Data", name, asked, self.make_data)

    def data_tensors(self, data: Any, span: Span | None) -> DataTensors:
        """The tensors of an object of `[Data]`, held once by all models that read it."""
        held = self._held.get(id(data))
        if held is None:
            try:
                held = self._held[id(data)] = DataTensors(data)
            except (ValueError, ArithmeticError) as error:  # the object's own words
                message = f"{type(data).__name__}: {error}"
                problem = Problem("wrong-value", message, span, "correct its block in [Data]")
                raise IngotError([problem]) from None
        return held

    # what fields refer to: a file's by name, Python's by what they hold

    def model_of(self, field: Field | GivenField, asked: Span | None = None) -> Model:
        """The model that a field refers to; one that is not there is told where it was `asked`."""
        if isinstance(field, GivenField):
            return field.model()
        return self.note(field, self.model(field.string(), asked or field.span))

    def block_of(self, field: Field | GivenField, section: str, made: tuple[type, ...] = ()) -> Any:
        """The block of a section that a field refers to; Python may give what is `made` of one."""
        if not isinstance(field, GivenField):
            return self.note(field, self.tree.require(section, field.string(), field.span))
        if not isinstance(field.value, (Given, *made)):
            fix = f"give ingot.{made[0].__name__}(...)" if made else None
            words = f"a {made[0].__name__}" if made else f"a block of [{section}]"
            raise field.wrong(words, fix=fix)
        return field.value

    def note(self, field: Field, target: Any) -> Any:
        """The target, remembered as what the field of a file means."""
        self._resolved[id(field)] = (field, target)  # a field that is alive keeps its id
        return target

    def record(self, block: Holder) -> Given:
        """What a block says, with the objects that were found for its names: no text of a file."""
        if isinstance(block, Given):
            return block
        if id(block) not in self._records:
            fields = (
                GivenField(field.name, self._recorded(field), field.span)
                for field in block.fields
                if field.name != "type"
            )
            kind = block.require("type").string()
            part = block.path.partition("/")[0]
            self._records[id(block)] = Given(kind, block.name, tuple(fields), block.span, part)
        return self._records[id(block)]

    def _recorded(self, field: Field) -> Any:
        _, value = self._resolved.get(id(field), (field, field.text))
        return self.record(value) if isinstance(value, Block) else value

    def make(self, block: Holder, law: Declared | None) -> Model:
        """The model of a law or, without one, of a type found elsewhere; it knows what made it."""
        if law is not None:
            model = bind_law(self, block, law)
        else:
            kind = block.require("type").string()
            model = self.elsewhere(kind, "Models", block).build(cast(Block, block), self)
            names = (*model.inputs, *model.outputs)
            raise_if(problem for name in names for problem in find_no_name(name, block))
        model.made = self.record(block)
        return model

    def models(self, field: Field | GivenField) -> list[Model]:
        """The models that a list names; the problems of all of them are told together."""
        if isinstance(field, GivenField):
            return list(field.models())
        found: list[Model] = []
        problems: list[Problem] = []
        for word in field.words():
            try:
                found.append(self.model(word, field.span))
            except IngotError as error:
                problems += [p for p in error.problems if p not in problems]
        if problems:
            raise IngotError(problems)
        return self.note(field, found)

    def _get(self, section: str, name: str, asked: Span | None, make: Any) -> Any:
        if (section, name) not in self._made:
            block = self.tree.require(section, name, asked)
            if (section, name) in self._open:
                chain = " -> ".join([*(n for _, n in self._open), name])
                raise IngotError([Problem(
                    "circular-model", f"[{name}] contains itself: {chain}", block.span,
                    "remove one of the references",
                )])  # fmt: skip
            self._open.append((section, name))
            try:
                self._made[section, name] = make(block)
            finally:
                self._open.pop()
        return self._made[section, name]

    def _model(self, block: Block) -> Model:
        kind = block.require("type").string()
        if kind in CATALOG and kind in ELSEWHERE["Models"]:
            message = f"there is already a type '{kind}', in {ELSEWHERE['Models'][kind]}"
            raise wrong_law(CATALOG[kind].function, message, "another name")
        return self.make(block, CATALOG.get(kind))

    def make_data(self, block: Holder) -> Any:
        """The object that a block of `[Data]` describes."""
        kind = block.require("type").string()
        made = self.elsewhere(kind, "Data", block)
        wanted = made.__annotations__
        raise_if(find_unknown(block, ("type", *wanted)))
        values = {}
        for name, hint in wanted.items():
            field = block.require(name)
            words = (field.value,) if isinstance(field, GivenField) else field.words()
            try:
                values[name] = read_constant(self, field, hint, words)
            except LookupError:
                expected = "numbers or a name in [Tensors]"
                fix = did_you_mean(field.text, self.tree.names("Tensors")) or "write numbers"
                raise field.wrong(expected, fix=fix) from None
        return made(**values)

    def refuse_untrusted(self, message: str, span: Span | None) -> None:
        """Raise where the file is not trusted: the message says what it would have executed."""
        if self.untrusted:
            raise IngotError([untrusted_code(message, span)])

    def elsewhere(self, kind: str, section: str, block: Holder) -> Any:
        """The class of a type that is not a law."""
        known = ELSEWHERE[section]
        if kind not in known:
            laws, own = (CATALOG, "a law of your own comes with --load FILE.py")
            if section != "Models":
                laws, own = {}, f"`ingot syntax` lists the types of [{section}]"
            meant = did_you_mean(kind, [*laws, *known, *list_presets(section)]) or own
            raise IngotError([Problem(
                "unknown-type", f"no type '{kind}' in [{section}]", block.require("type").span,
                find_home(kind) or meant,
            )])  # fmt: skip
        return locate(kind, section)


def find_home(kind: str) -> str | None:
    """The fix for a type that another section has."""
    homes = (section for section, known in ELSEWHERE.items() if kind in known)
    home = next(homes, "Models" if kind in CATALOG else None)
    return None if home is None else f"move this block to [{home}]"


def locate(kind: str, section: str) -> Any:
    """The class of a type that lives in another room."""
    return getattr(importlib.import_module(ELSEWHERE[section][kind]), kind)
