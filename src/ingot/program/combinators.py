"""Types that contain models: compositions, implicit updates, gradients of inner models."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.hit import Block, Field, unknown_blocks, unknown_fields
from ingot.model import Factory, Model
from ingot.options import NotNegativeCount
from ingot.program.builder import Node
from ingot.program.complement import Surroundings, balance_complements
from ingot.program.differentiate import gradient
from ingot.program.implicit import Solve, read_items
from ingot.program.program import Newton, Variable
from ingot.program.rewrite import substitute
from ingot.program.solvers import SYSTEMS, find_linear_problems, find_unknown_type, read_newton
from ingot.program.substeps import MAX_LEVEL, find_substeps, take_in_parts
from ingot.program.tracer import Placed, Tracer
from ingot.types import Scalar, Value

__all__ = ["ComposedModel", "ImplicitUpdate", "Normality", "check_fields", "read_newton"]


def check_fields(block: Block, known: tuple[str, ...]) -> None:
    """Raise all unknown keys and sub-blocks of a block."""
    problems = [*unknown_fields(block, ("type", *known)), *unknown_blocks(block)]
    if problems:
        raise IngotError(problems)


def _refuse(field: Field, code: str, message: str, fix: str | None = None) -> IngotError:
    return IngotError([Problem(code, message, field.span, fix)])


@dataclass(frozen=True, slots=True)
class ComposedModel:
    """Models run one after another, wired by the names of their variables.

    models: what is composed; additional_outputs: values to give although another model reads them.
    """

    order: tuple[Model, ...]

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The composition of the listed models and of all that provide their parameters."""
        check_fields(block, ("models", "additional_outputs"))
        children = _with_providers(factory.models(block.require("models")))
        order = _sort_children(children, block)
        inputs: dict[str, type[Value]] = {}
        given: dict[str, type[Value]] = {}
        read: set[str] = set()
        for child in order:
            for name, kind in child.inputs.items():
                known = given if name in given else inputs
                if known.setdefault(name, kind) is not kind:
                    raise IngotError([Problem(
                        "kinds-differ",
                        f"[{child.name}] reads '{name}' as {kind.__name__},"
                        f" which is a {known[name].__name__}", child.span, "rename one of the two",
                    )])  # fmt: skip
                read.add(name)
            for name, kind in child.outputs.items():
                given[name] = kind
                read.discard(name)
        more = block.field("additional_outputs")
        wanted = more.words() if more is not None else ()
        for word in wanted:
            if word not in given:
                assert more is not None
                raise _refuse(
                    more, "unknown-output", f"no model of [{block.name}] gives '{word}'",
                    did_you_mean(word, given),
                )  # fmt: skip
        outputs = {n: k for n, k in given.items() if n not in read or n in wanted}
        body = ComposedModel(order)
        named = name_parts(children)
        return Model(block.name, "ComposedModel", block.span, inputs, outputs, body, named)

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """The outputs of all models in turn."""
        known = dict(values)
        for child in self.order:
            known.update(tracer.run(child, known))
        return {name: known[name] for name in model.outputs}


def name_parts(parts: Iterable[Model]) -> dict[str, Model]:
    """Models by name; of those that Python calls alike, the second is `name_2`."""
    named: dict[str, Model] = {}
    for part in parts:
        alike = (f"{part.name}_{i}" for i in itertools.count(2))
        named[next(n for n in itertools.chain([part.name], alike) if n not in named)] = part
    return named


def _with_providers(listed: list[Model]) -> list[Model]:
    """The models and, breadth first, those that provide their parameters; each once."""
    found = list({id(m): m for m in listed}.values())
    for model in found:
        for provider in model.providers.values():
            if all(provider is not m for m in found):
                found.append(provider)
    return found


def _sort_children(children: list[Model], block: Block) -> tuple[Model, ...]:
    """An order in which every model finds what it reads; ties as listed."""
    gives = _find_givers(children, block)
    left = list(children)
    done: list[Model] = []
    while left:
        ready = next((m for m in left if not _must_wait(m, gives, left)), None)
        if ready is None:
            names = ", ".join(m.name for m in left)
            fix = "break the circle with an old value (`x~1`) or an ImplicitUpdate"
            guessed = [(m, n) for m in left for n in m.inputs if n in {*m.outputs} - m.overrides]
            if guessed:
                model, name = guessed[0]
                told = "guess = old" if isinstance(block, Block) else 'guess="old"'
                fix = f"let '{name}' of [{model.name}] start from its last value: {told}"
            raise IngotError([Problem(
                "circular-model", f"the models {names} wait for one another", block.span, fix,
            )])  # fmt: skip
        left.remove(ready)
        done.append(ready)
    return tuple(done)


def _find_givers(children: list[Model], block: Block) -> dict[str, list[Model]]:
    """Who gives each value: a model, then the one that overrides it, if there is any."""
    gives: dict[str, list[Model]] = {}
    for child in sorted(children, key=lambda m: bool(m.overrides)):
        for name in child.outputs:
            before = gives.setdefault(name, [])
            if before and (name not in child.overrides or name in before[-1].overrides):
                raise IngotError([Problem(
                    "two-providers",
                    f"[{before[-1].name}] and [{child.name}] both give '{name}'", block.span,
                    "rename one output, or leave one model out",
                )])  # fmt: skip
            before.append(child)
    return gives


def _must_wait(model: Model, gives: dict[str, list[Model]], left: list[Model]) -> bool:
    """Whether something that the model reads or overrides is still to be computed."""
    before = [m for n in model.overrides for m in gives[n]]
    before += [m for n in model.inputs if n not in model.overrides for m in gives.get(n, ())]
    return any(m is not model and any(m is other for other in left) for m in before)


@dataclass(frozen=True, slots=True)
class Normality:
    """The gradient of an inner model's scalar output by some of its inputs.

    model: the inner model; function: its scalar output; from: inputs; to: names of the gradients.
    """

    inner: Model
    function: str
    by: tuple[str, ...]
    to: tuple[str, ...]

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The gradients as a model with all inputs of the inner one."""
        check_fields(block, ("model", "function", "from", "to"))
        asked = block.require("model")
        inner = factory.model_of(asked)
        function, by, to = (block.require(k) for k in ("function", "from", "to"))
        name = function.string()
        raise_if(_find_gradient_problems(inner, function, by, to))
        outputs = {t: inner.inputs[f] for f, t in zip(by.words(), to.words(), strict=True)}
        body = Normality(inner, name, by.words(), to.words())
        children = {inner.name: inner}
        model = Model(
            block.name, "Normality", block.span, dict(inner.inputs), outputs, body, children,
            inner.providers,
        )  # fmt: skip
        return model

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """The inner model on placeholders, its gradient, and the values put in their place."""
        held = {n: tracer.unknown(n, k, values[n].axes) for n, k in self.inner.inputs.items()}
        function = tracer.run(self.inner, held)[self.function].nodes[0]
        swap = {p.id: v for n in held for p, v in zip(held[n].nodes, values[n].nodes, strict=True)}
        results: dict[str, Placed] = {}
        for name, to in zip(self.by, self.to, strict=True):
            slopes = gradient(tracer.builder, function, held[name].nodes)
            nodes = tuple(substitute(tracer.builder, slopes, swap))
            results[to] = replace(held[name], nodes=nodes)
        return results


def _find_gradient_problems(
    inner: Model, function: Field, by: Field, to: Field
) -> Iterator[Problem]:
    name = function.string()
    kind = inner.outputs.get(name)
    if kind is None:
        yield Problem("unknown-output", f"[{inner.name}] has no output '{name}'", function.span,
                      did_you_mean(name, inner.outputs))  # fmt: skip
    elif kind is not Scalar:
        yield Problem("kinds-differ", f"'{name}' is of kind {kind.__name__}, not Scalar",
                      function.span, "name a Scalar output")  # fmt: skip
    for word in by.words():
        if word not in inner.inputs:
            yield Problem("unknown-input", f"[{inner.name}] has no input '{word}'", by.span,
                          did_you_mean(word, inner.inputs))  # fmt: skip
    if len(by.words()) != len(to.words()):
        message = f"{len(by.words())} inputs, but {len(to.words())} names for their gradients"
        yield Problem("wrong-value", message, to.span, "give one name for each input")


@dataclass(frozen=True, slots=True)
class ImplicitUpdate:
    """Unknowns for which the residuals of an equation system vanish.

    equation_system: a NonlinearSystem; solver: a Newton variant; predictor: gives first guesses;
    guess: where unknowns that it does not give start, `given` as inputs or `old`, from their last
    values; max_substepping_level: how often a step that fails is halved at most;
    incremental_variables: givens that change gradually then, from old values that become inputs;
    input_sensitivity_solver, param_sensitivity_solver: linear solvers of derivatives, read and
    without effect.
    """

    residual: Model
    unknowns: tuple[str, ...]
    residuals: tuple[str, ...]
    newton: Newton
    predictor: Model | None
    kept: tuple[str, ...] = ()
    """The unknowns that start from their old values."""
    level: int = 0

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The update as a model from the residual's other inputs to the unknowns."""
        check_fields(
            block,
            ("equation_system", "solver", "predictor", "guess", "input_sensitivity_solver",
             "param_sensitivity_solver", "max_substepping_level", "incremental_variables"),
        )  # fmt: skip
        asked = block.require("equation_system")
        system = factory.block_of(asked, "EquationSystems")
        raise_if(find_unknown_type(system.require("type"), SYSTEMS, "equation system"))
        check_fields(system, tuple(SYSTEMS[system.require("type").string()]))
        inner = system.require("model")
        residual = factory.model_of(inner)
        field = system.require("unknowns")
        unknowns = tuple(w for row in field.rows() for w in row)
        rows = system.field("residuals")
        names = tuple(w for row in rows.rows() for w in row) if rows else ()
        residuals = names or tuple(f"{u}_residual" for u in unknowns)
        _check_system(system, field, rows or field, residual, unknowns, residuals)
        newton = read_newton(factory, block.require("solver"), len(field.rows()))
        raise_if(_find_update_problems(block, factory, residual, field))
        predictor = None
        asked = block.field("predictor")
        if asked is not None:
            predictor = factory.model_of(asked)
        predicted = set(predictor.outputs) if predictor else set()
        guess = block.field("guess")
        start = "given" if guess is None else guess.option(Literal["given", "old"])
        kept = tuple(u for u in unknowns if u not in predicted) if start == "old" else ()
        inputs = {
            n: k
            for n, k in residual.inputs.items()
            if n not in unknowns or (n not in predicted and n not in kept)
        }
        for name in kept:
            old = inputs.setdefault(f"{name}~1", residual.inputs[name])
            if old is not residual.inputs[name]:
                raise IngotError([Problem(
                    "kinds-differ",
                    f"'{name}' is of kind {residual.inputs[name].__name__}, its old value of"
                    f" {old.__name__}", (guess or block).span, "leave 'guess' out",
                )])  # fmt: skip
        if predictor:
            inputs.update({n: k for n, k in predictor.inputs.items() if n not in inputs})
        ramped = block.field("incremental_variables")
        for word in ramped.words() if ramped is not None else ():
            inputs.setdefault(f"{word}~1", residual.inputs[word])
        outputs = {u: residual.inputs[u] for u in unknowns}
        asked = block.field("max_substepping_level")
        level = 0 if asked is None else min(asked.option(NotNegativeCount), MAX_LEVEL)
        body = ImplicitUpdate(residual, unknowns, residuals, newton, predictor, kept, level)
        children = name_parts([residual, predictor] if predictor else [residual])
        return Model(block.name, "ImplicitUpdate", block.span, inputs, outputs, body, children)

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """One solve node; the residual's lines read the unknowns' placeholders."""
        guesses = self._guess(values, tracer)
        held: dict[str, Placed] = {}
        for name in self.unknowns:
            axes = tracer.layouts.of(name) or guesses[name].axes
            old = values.get(f"{name}~1")
            if old is not None:
                axes = axes or old.axes
            held[name] = tracer.unknown(name, model.outputs[name], axes)
        read, follows = values, {}
        if self.level:
            read, follows = take_in_parts(tracer.builder, values, held, model.name)
            guesses = self._guess(read, tracer)
        found = tracer.run(self.residual, {**read, **held})
        unknowns, residuals = [], []
        for name, row in zip(self.unknowns, self.residuals, strict=True):
            axes = tracer.layouts.join([held[name].axes, found[row].axes], f"[{model.name}]")
            if len(held[name].axes) != len(axes):
                raise IngotError([Problem(
                    "unknown-extent",
                    f"'{name}' has no axis, but its residual '{row}' lies on"
                    f" {', '.join(map(str, axes))}",
                    model.span,
                    "declare it in [Settings]/example_batch_shape or give an initial value",
                )])  # fmt: skip
            unknowns.append(Variable(name, held[name].kind, axes, held[name].nodes))
            residuals.append(Variable(row, found[row].kind, axes, found[row].nodes))
        solve = Solve(
            model.name, tuple(unknowns), tuple(residuals), (), self.newton,
            tuple(sorted(tracer.clocks)),
        )  # fmt: skip
        first = tuple(n for name in self.unknowns for n in guesses[name].nodes)
        around = Surroundings(
            _find_duration(tracer, read),
            solve.clocks,
            {name: placed.nodes for name, placed in {**read, **held}.items()},
            tracer.list_parameter_numbers(),
        )
        rows = iter(balance_complements(tracer.builder, solve.rows, solve.columns, around))
        residuals = [replace(v, nodes=tuple(next(rows) for _ in v.nodes)) for v in residuals]
        solve = replace(solve, residuals=tuple(residuals))
        if self.level:
            substeps = find_substeps(
                self.level, solve.rows, solve.columns, first, follows, model.name
            )
            solve = replace(solve, substeps=substeps)
        node = tracer.solve(solve, first)
        tracer.named += [
            (node.attr.name, Variable(n, k, values[n].axes, values[n].nodes))
            for n, k in model.inputs.items()
        ]
        items = iter(read_items(tracer.builder, node))
        return {
            v.name: Placed(v.kind, tuple(next(items) for _ in v.nodes), v.axes)
            for v in solve.unknowns
        }

    def _guess(self, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """The values under the names of unknowns where these start."""
        guesses = {**values, **{name: values[f"{name}~1"] for name in self.kept}}
        return guesses | (tracer.run(self.predictor, values) if self.predictor else {})


def _check_system(
    system: Block, field: Field, rows: Field, residual: Model, unknowns: tuple[str, ...],
    residuals: tuple[str, ...],
) -> None:  # fmt: skip
    problems = [
        Problem("unknown-input", f"[{residual.name}] has no input '{u}'", field.span,
                did_you_mean(u, residual.inputs)
                or f"leave it out, or let a model of [{residual.name}] read '{u}'")
        for u in unknowns if u not in residual.inputs
    ] + [
        Problem("unknown-output", f"[{residual.name}] has no output '{r}'", rows.span,
                did_you_mean(r, residual.outputs)
                or f"let a model of [{residual.name}] give '{r}'")
        for r in residuals if r not in residual.outputs
    ]  # fmt: skip
    if len(unknowns) != len(residuals):
        problems.append(Problem(
            "wrong-value", f"{len(unknowns)} unknowns, but {len(residuals)} residuals", rows.span,
            "give one residual for each unknown",
        ))  # fmt: skip
    elif [len(row) for row in field.rows()] != [len(row) for row in rows.rows()]:
        problems.append(Problem(
            "wrong-value", "unknowns and residuals are not parted into the same groups", rows.span,
            "put the ';' of both in the same places",
        ))  # fmt: skip
    problems += _find_structure_problems(system, len(field.rows()))
    for u, r in zip(unknowns, residuals, strict=False):
        wanted, found = residual.inputs.get(u), residual.outputs.get(r)
        if wanted is not None and found is not None and wanted is not found:
            problems.append(Problem(
                "kinds-differ",
                f"'{u}' is of kind {wanted.__name__}, its residual '{r}' of {found.__name__}",
                rows.span, "name a residual of the same kind",
            ))  # fmt: skip
    if problems:
        raise IngotError(problems)


def _find_structure_problems(system: Block, groups: int) -> Iterator[Problem]:
    """`structure` says of every group how the peer stores it; elimination finds that by itself."""
    field = system.field("structure")
    words = field.words() if field is not None else ()
    if field is not None and len(words) != groups:
        message = f"'structure' has {len(words)} entries, but there are {groups} groups of unknowns"
        yield Problem("wrong-value", message, field.span, "give one entry for each group")
    for word in words:
        if word.lower() not in ("block", "dense"):
            assert field is not None
            message = f"'structure' is made of block and dense, not '{word}'"
            yield Problem(
                "wrong-value", message, field.span, did_you_mean(word, ("block", "dense"))
            )


def _find_update_problems(
    block: Block, factory: Factory, residual: Model, unknowns: Field
) -> Iterator[Problem]:
    groups = unknowns.rows()
    for name in ("input_sensitivity_solver", "param_sensitivity_solver"):
        field = block.field(name)
        if field is not None:
            yield from find_linear_problems(factory, field, len(groups))
    field = block.field("incremental_variables")
    given = [n for n in residual.inputs if all(n not in row for row in groups)]
    for word in field.words() if field is not None else ():
        if word not in given:
            assert field is not None
            yield Problem("unknown-input", f"[{residual.name}] is not given '{word}'", field.span,
                          did_you_mean(word, given))  # fmt: skip


def _find_duration(tracer: Tracer, values: Mapping[str, Placed]) -> Node | None:
    """The length of a step, where there is one clock and both of its values are read."""
    if len(tracer.clocks) != 1:
        return None
    (clock,) = tracer.clocks
    ends = [values.get(name) for name in (clock, f"{clock}~1")]
    return tracer.builder.emit("sub", *(e.nodes[0] for e in ends if e)) if all(ends) else None
