"""A loaded package as an object to call: values, derivatives, parameters, status, autograd."""

import ctypes
import threading
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.execute.batch import Shape, common
from ingot.execute.native import Arranged, Native, Solver
from ingot.execute.status import Status
from ingot.execute.transient import History, Transient
from ingot.package.metadata import Metadata, ParameterInfo, VariableInfo

__all__ = ["Artifact"]

Arrays = Mapping[str, Any]
Blocks = dict[str, dict[str, Tensor]]


class Artifact(nn.Module):
    """A compiled model. Calls are checked, threads may share it, autograd passes through it."""

    def __init__(self, meta: Metadata, library: ctypes.CDLL) -> None:
        super().__init__()
        self.metadata = meta
        self._library = library
        self.dtype = torch.float64 if meta.dtype == "float64" else torch.float32
        self._names = {p.variable.name: f"p{i}" for i, p in enumerate(meta.parameters)}
        slopes = {b.input for b in meta.derivatives}
        for p in meta.parameters:
            name = p.variable.name
            value = nn.Parameter(_tensor(p, self.dtype), requires_grad=name in slopes)
            self.register_parameter(self._names[name], value)
        self._shapes = {v.name: _shape(v) for v in meta.inputs}
        self._pairs = [(b.output, b.input) for b in meta.derivatives]
        self._free = {(b.output, b.input) for b in meta.derivatives if b.batch_independent}
        self._last = threading.local()
        kernel = meta.kernel
        assert kernel is not None
        self._forward = self._native(library, kernel.forward, [])
        self._jacobian: Native | None = None
        if kernel.jacobian is not None:
            self._jacobian = self._native(library, kernel.jacobian, self._pairs)

    def _native(self, library: ctypes.CDLL, entry: str, pairs: list[tuple[str, str]]) -> Native:
        meta = self.metadata
        parameters = [p.variable for p in meta.parameters]
        known = {v.name: _shape(v) for v in (*meta.inputs, *meta.outputs, *parameters)}
        blocks = [
            Shape(f"{y}:{x}", known[y].sizes + known[x].sizes, known[y].base + known[x].base)
            for y, x in pairs
        ]
        return Native(
            run=getattr(library, entry),
            lanes=library.ingot_lanes(),
            inputs=tuple(_shape(v) for v in (*meta.inputs, *parameters)),
            hidden=tuple((_shape(p.variable), _tensor(p, self.dtype)) for p in meta.constants),
            outputs=(*(_shape(v) for v in meta.outputs), *blocks),
            solvers=tuple(Solver(s.name, s) for s in meta.solvers),
            dtype=self.dtype,
        )

    def with_rules(self, meta: Metadata) -> "Artifact":
        """The same code under other solver rules."""
        return Artifact(meta, self._library)

    # what it is

    @property
    def inputs(self) -> dict[str, VariableInfo]:
        """Inputs by name."""
        return {v.name: v for v in self.metadata.inputs}

    @property
    def outputs(self) -> dict[str, VariableInfo]:
        """Outputs by name."""
        return {v.name: v for v in self.metadata.outputs}

    @property
    def status(self) -> tuple[Status, ...]:
        """What became of every point in this thread's last call, one status a solve."""
        return getattr(self._last, "statuses", ())

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        """The promoted parameters by their qualified names; they share storage with the model."""
        return iter([(name, getattr(self, key)) for name, key in self._names.items()])

    def set_parameter(self, name: str, value: Any) -> None:
        """Give a promoted parameter another value, batched or not."""
        if name not in self._names:
            raise _problem(
                "unknown-parameter", f"'{name}' is not promoted",
                did_you_mean(name, self._names) or f"compile with -p {name}",
            )  # fmt: skip
        variable = next(p.variable for p in self.metadata.parameters if p.variable.name == name)
        try:
            tensor = torch.as_tensor(value, dtype=self.dtype)
        except (TypeError, ValueError):
            told = f"'{name}' is {_told(value)}, not a tensor or an array of numbers"
            raise _problem("wrong-input", told, "give a number or an array") from None
        raise_if(self._misfits(name, _shape(variable), tensor))
        current: nn.Parameter = getattr(self, self._names[name])
        if current.shape == tensor.shape:
            with torch.no_grad():
                current.copy_(tensor)
        else:
            fresh = nn.Parameter(tensor.clone(), requires_grad=current.requires_grad)
            setattr(self, self._names[name], fresh)

    # calls

    def forward(self, inputs: Arrays) -> dict[str, Any]:
        """The outputs of inputs `(*batch, *axes, *base)`; NumPy arrays give NumPy arrays."""
        given = self._checked(inputs)
        every = {**given, **dict(self.named_parameters())}
        differ = [n for n, x in every.items() if x.requires_grad]
        if inputs and all(isinstance(x, np.ndarray) for x in inputs.values()):
            return {n: x.numpy() for n, x in self._values(every).items()}
        if differ and torch.is_grad_enabled():
            return _through_autograd(self, every, differ)
        return self._values(every)

    def _values(self, every: Mapping[str, Tensor]) -> dict[str, Tensor]:
        outputs, self._last.statuses = self._forward(every)
        return outputs

    def jacobian(self, inputs: Arrays) -> Blocks:
        """Blocks `[output][input]` of the compiled pairs: (*batch, *axes, *axes, *base, *base)."""
        return self._blocks(inputs, set(self._shapes))

    def param_jacobian(self, inputs: Arrays) -> Blocks:
        """Blocks `[output][parameter]` of the compiled pairs with promoted parameters."""
        return self._blocks(inputs, set(self._names))

    def jvp(self, inputs: Arrays, tangents: Arrays) -> dict[str, Tensor]:
        """The change of every output along tangents of inputs or promoted parameters."""
        every = {**self._checked(inputs), **dict(self.named_parameters())}
        self._derivable()
        known = {**self._shapes, **self._parameter_shapes()}
        along = self._directions(tangents, known, "input", every)
        return self._pushed(self._both(every)[1], along)

    def vjp(self, inputs: Arrays, cotangents: Arrays) -> dict[str, Tensor]:
        """The gradient by every input of a sum of outputs times cotangents, point by point."""
        every = {**self._checked(inputs), **dict(self.named_parameters())}
        self._derivable()
        along = self._directions(cotangents, self._output_shapes(), "output", every)
        return self._pulled(self._both(every)[1], along, set(self._shapes))

    def param_vjp(self, inputs: Arrays, cotangents: Arrays) -> dict[str, Tensor]:
        """The gradient by every promoted parameter, summed over the points that share it."""
        every = {**self._checked(inputs), **dict(self.named_parameters())}
        self._derivable()
        along = self._directions(cotangents, self._output_shapes(), "output", every)
        pulled = self._pulled(self._both(every)[1], along, set(self._names))
        return {n: _summed_to(x, every[n].shape) for n, x in pulled.items()}

    def transient(self, transient: Transient) -> History:
        """Many steps in one native call."""
        return self.arranged(transient)()

    def arranged(self, transient: Transient) -> Arranged:
        """A transient with its arrays laid out, to be run any number of times."""
        fixed = tuple((_shape(p.variable), getattr(self, self._names[p.variable.name]).detach())
                      for p in self.metadata.parameters)  # fmt: skip
        native = Native(
            self._forward.run, self._forward.lanes,
            tuple(s for s in self._forward.inputs if s.name not in self._names),
            (*fixed, *self._forward.hidden), self._forward.outputs, self._forward.solvers,
            self.dtype,
        )  # fmt: skip
        return Arranged(native, transient)

    # derivatives

    def _derivable(self) -> None:
        if self._jacobian is None:
            raise _problem("no-derivatives", "the package was compiled without derivatives",
                           "compile with -d OUT:IN, or -d : for all pairs")  # fmt: skip

    def _both(self, every: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        self._derivable()
        assert self._jacobian is not None
        found, self._last.statuses = self._jacobian(every)
        outputs = {v.name: found[v.name] for v in self.metadata.outputs}
        blocks = {n: x for n, x in found.items() if n not in outputs}
        if self._free:
            full = found if all(x.numel() for x in blocks.values()) else self._anywhere(every)
            blocks |= {f"{y}:{x}": self._first(full[f"{y}:{x}"], y, x) for y, x in self._free}
        return outputs, blocks

    def _anywhere(self, every: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The blocks at one point, for those that are the same at all where there is none."""
        assert self._jacobian is not None
        shapes = {s.name: s.sizes + s.base for s in self._jacobian.inputs}
        return self._jacobian({
            n: x if x.shape == shapes[n] else x.new_ones(shapes[n]) for n, x in every.items()
        })[0]  # fmt: skip

    def _first(self, block: Tensor, y: str, x: str) -> Tensor:
        shape = self._block_shape(y, x)
        return block[(0,) * (block.ndim - len(shape))]

    def _block_shape(self, y: str, x: str) -> tuple[int, ...]:
        assert self._jacobian is not None
        shape = next(s for s in self._jacobian.outputs if s.name == f"{y}:{x}")
        return shape.sizes + shape.base

    def _blocks(self, inputs: Arrays, by: set[str]) -> Blocks:
        every = {**self._checked(inputs), **dict(self.named_parameters())}
        blocks = self._both(every)[1]
        found: Blocks = {}
        for y, x in self._pairs:
            if x in by:
                found.setdefault(y, {})[x] = blocks[f"{y}:{x}"]
        return found

    def _pushed(
        self, blocks: Mapping[str, Tensor], tangents: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        known = {**self._shapes, **self._parameter_shapes()}
        found: dict[str, Tensor] = {}
        for x, tangent in tangents.items():
            for v in self.metadata.outputs:
                block = self._pair(blocks, v.name, x)
                term = _product(block, tangent, _shape(v), known[x])
                found[v.name] = found[v.name] + term if v.name in found else term
        return found

    def _pulled(
        self, blocks: Mapping[str, Tensor], cotangents: Mapping[str, Tensor], by: set[str]
    ) -> dict[str, Tensor]:
        known = {**self._shapes, **self._parameter_shapes()}
        shapes = self._output_shapes()
        found: dict[str, Tensor] = {}
        for y, value in cotangents.items():
            for x in sorted(by & {x for _, x in self._pairs}):
                block = self._pair(blocks, y, x)
                term = _product(block, value, shapes[y], known[x], turned=True)
                found[x] = found[x] + term if x in found else term
        return found

    def _pair(self, blocks: Mapping[str, Tensor], y: str, x: str) -> Tensor:
        if (y, x) not in self._pairs:
            raise _problem("no-derivatives", f"the pair {y}:{x} was not compiled",
                           f"compile with -d {y}:{x}")  # fmt: skip
        return blocks[f"{y}:{x}"]

    def _output_shapes(self) -> dict[str, Shape]:
        return {v.name: _shape(v) for v in self.metadata.outputs}

    def _parameter_shapes(self) -> dict[str, Shape]:
        return {p.variable.name: _shape(p.variable) for p in self.metadata.parameters}

    # checks

    def _checked(self, inputs: Arrays) -> dict[str, Tensor]:
        """The inputs as tensors, or one error that holds all that is wrong with them."""
        given, problems = self._read(inputs, self._shapes, "input")
        problems += [
            Problem("missing-input", f"the input '{n}' is missing", None, f"give '{n}'")
            for n in self._shapes if n not in inputs
        ]  # fmt: skip
        raise_if(problems)
        return given

    def _directions(
        self,
        values: Arrays,
        known: Mapping[str, Shape],
        word: Literal["input", "output"],
        every: Mapping[str, Tensor],
    ) -> dict[str, Tensor]:
        """Tangents or cotangents as tensors that fit the batch of `every`."""
        given, problems = self._read(values, known, word)
        raise_if(problems)
        shapes = {**self._shapes, **self._parameter_shapes()}
        pairs = [(shapes[n], x) for n, x in every.items()]
        pairs += [(known[n], x) for n, x in given.items()]
        common([tuple(x.shape[: x.ndim - s.rank]) for s, x in pairs])
        return given

    def _read(
        self, values: Arrays, known: Mapping[str, Shape], word: Literal["input", "output"]
    ) -> tuple[dict[str, Tensor], list[Problem]]:
        if not isinstance(values, Mapping):
            told = f"the {word}s are a {type(values).__name__}, not values by name"
            fix = f"give a dictionary of {', '.join(known)}"
            raise _problem("wrong-input", told, fix)
        problems = [
            Problem("unknown-input" if word == "input" else "unknown-output",
                    f"there is no {word} '{n}'", None,
                    did_you_mean(str(n), known) or f"one of: {', '.join(known)}")
            for n in values if n not in known
        ]  # fmt: skip
        given: dict[str, Tensor] = {}
        for name in (n for n in known if n in values):
            value = _as_tensor(values[name])
            if value is None:
                told = f"'{name}' is {_told(values[name])}, not a tensor or an array of numbers"
                problems.append(Problem("wrong-input", told, None, "give a torch or NumPy array"))
                continue
            problems += self._misfits(name, known[name], value)
            given[name] = value
        return given, problems

    def _misfits(self, name: str, shape: Shape, value: Tensor) -> list[Problem]:
        found = []
        if value.dtype != self.dtype:
            kind = str(value.dtype).removeprefix("torch.")
            other = f", or compile with --dtype {kind}" if kind in ("float32", "float64") else ""
            found.append(Problem(
                "wrong-dtype", f"'{name}' is {kind}, the package computes in {self.metadata.dtype}",
                None, f"convert it to {self.metadata.dtype}{other}",
            ))  # fmt: skip
        if value.device.type != self.metadata.device:
            kind = value.device.type
            other = f", or compile with --device {kind}" if kind in ("cpu", "cuda") else ""
            found.append(Problem(
                "wrong-device", f"'{name}' is on {value.device}, the package runs on"
                f" {self.metadata.device}", None, f"move it to {self.metadata.device}{other}",
            ))  # fmt: skip
        want = shape.sizes + shape.base
        if tuple(value.shape[value.ndim - len(want) :]) != want or value.ndim < len(want):
            told = f"'{name}' has shape {tuple(value.shape)}, expected {_expected(want)}"
            found.append(Problem("wrong-shape", told, None, "give the batch axes first"))
        return found


class _Autograd(torch.autograd.Function):
    """The artifact as one node of torch's graph: the backward pass multiplies compiled blocks."""

    @staticmethod
    def forward(ctx: Any, artifact: Artifact, names: list[str], *values: Tensor) -> Any:
        every = dict(zip(names, values, strict=True))
        outputs, blocks = artifact._both(every)
        ctx.artifact, ctx.names = artifact, names
        ctx.keys = list(blocks)
        ctx.shapes = [v.shape for v in values]
        ctx.save_for_backward(*blocks.values())
        ctx.set_materialize_grads(False)
        return tuple(outputs.values())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *up: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        artifact: Artifact = ctx.artifact
        blocks = dict(zip(ctx.keys, ctx.saved_tensors, strict=True))
        outputs = [v.name for v in artifact.metadata.outputs]
        pairs = zip(outputs, up, strict=True)
        cotangents = {n: g for n, g in pairs if g is not None}
        wanted = {n for n, need in zip(ctx.names, ctx.needs_input_grad[2:], strict=True) if need}
        for y in cotangents:
            for x in wanted:
                artifact._pair(blocks, y, x)
        pulled = artifact._pulled(blocks, cotangents, wanted)
        found = [
            _summed_to(pulled[n], shape) if n in pulled else None
            for n, shape in zip(ctx.names, ctx.shapes, strict=True)
        ]
        return (None, None, *found)


def _through_autograd(
    artifact: Artifact, every: Mapping[str, Tensor], differ: list[str]
) -> dict[str, Tensor]:
    missing = [
        f"{v.name}:{n}" for v in artifact.metadata.outputs for n in differ
        if (v.name, n) not in artifact._pairs
    ]  # fmt: skip
    if missing and artifact._jacobian is None:
        raise _problem("no-derivatives", "an input requires a gradient, but no pair was compiled",
                       f"compile with -d {missing[0]}, or call under torch.no_grad()")  # fmt: skip
    names = list(every)
    found = _Autograd.apply(artifact, names, *every.values())
    return dict(zip((v.name for v in artifact.metadata.outputs), found, strict=True))


def _product(
    block: Tensor, other: Tensor, out: Shape, into: Shape, *, turned: bool = False
) -> Tensor:
    """A block times a tangent of its input, or, turned, times a cotangent of its output."""
    left, right = len(out.sizes), len(into.sizes)
    rank = left + right + len(out.base) + len(into.base)
    batch = block.ndim - rank
    # (*batch, *out sizes, *in sizes, *out base, *in base) -> (*batch, out, in)
    first = [*range(batch), *range(batch, batch + left),
             *range(batch + left + right, batch + left + right + len(out.base))]  # fmt: skip
    rest = [i for i in range(block.ndim) if i not in first]
    matrix = block.permute((*first, *rest)).reshape(*block.shape[:batch], out.width, into.width)
    side = out if turned else into
    vector = other.reshape(*other.shape[: other.ndim - side.rank], side.width, 1)
    result = (matrix.mT if turned else matrix) @ vector
    to = into if turned else out
    return result[..., 0].reshape(*result.shape[:-2], *to.sizes, *to.base)


def _summed_to(x: Tensor, shape: torch.Size) -> Tensor:
    return x.sum_to_size(shape) if x.shape != shape else x


def _as_tensor(value: Any) -> Tensor | None:
    """A tensor that holds the numbers of a torch or NumPy array, if it is one."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        viewable = value.flags.writeable and all(s >= 0 for s in value.strides)
        try:
            return torch.from_numpy(value if viewable else value.copy())
        except TypeError:
            return None
    return value if isinstance(value, Tensor) and value.layout == torch.strided else None


def _told(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return f"a {'sparse tensor' if isinstance(value, Tensor) else type(value).__name__}"


def _expected(want: tuple[int, ...]) -> str:
    return f"(*batch, {', '.join(map(str, want))})" if want else "(*batch)"


def _shape(v: VariableInfo) -> Shape:
    return Shape(v.name, v.sub_batch, v.base)


def _tensor(p: ParameterInfo, dtype: torch.dtype) -> Tensor:
    return torch.tensor(p.value.values, dtype=dtype).reshape(p.value.shape)


def _problem(code: str, message: str, fix: str | None) -> IngotError:
    return IngotError([Problem(code, message, None, fix)])
