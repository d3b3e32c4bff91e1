"""What torch knows of modules, tensors and modes and does not promise to keep."""

import ctypes
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

__all__ = [
    "BUILD", "CUDA", "FOLDER", "HOOKS", "VERSION", "Modes", "OpOverload", "abandon_capture",
    "ambient", "any_autocast", "any_dispatch", "apply_of", "autocast_now", "base_of", "buffers_of",
    "children_of", "find_allocator", "find_dfti", "forward_mode", "has_global_hooks", "has_hooks",
    "import_collectives", "is_mode_switch", "is_transform", "list_global_hooks", "non_persistent",
    "parameters_of", "pytree", "raw_stream", "real_transform", "register_value", "same_layout",
    "schema_of", "transformed", "transforms", "use_count", "view_memory", "without_autocast",
    "without_storage",
]  # fmt: skip

BUILD: str = torch.__version__
"""The version of torch here with the name of its build, as in 2.13.0+cpu."""

VERSION = BUILD.split("+")[0]

CUDA: str | None = torch.version.cuda
"""The CUDA that torch was built for, as in 12.8; none of a build for CPUs."""

FOLDER = Path(torch.__file__).parent

OpOverload = torch._ops.OpOverload


def import_collectives() -> None:
    """Import `torch.distributed.nn`, as Dynamo does, so that it keeps no group of ranks.

    The group of all ranks that is there at its import is a default argument of its functions. It
    outlives `destroy_process_group` then, and threads of gloo that ask for Python's lock while the
    interpreter ends abort the process, one run in some.
    """
    if "torch.distributed.nn" not in sys.modules:
        groups = torch.distributed.group
        world, groups.WORLD = groups.WORLD, None
        try:
            import_module("torch.distributed.nn")
        finally:
            groups.WORLD = world


def schema_of(operation: Any) -> Any:
    """The arguments and results of an operation, and which of them share memory; None of others."""
    return getattr(operation, "_schema", None)


def base_of(tensor: Tensor) -> Tensor | None:
    """What a tensor is a view of."""
    return tensor._base


HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip
"""The tables of a module whose entries run beside its code."""

parameters_of: Callable[[nn.Module], dict[str, Any]] = operator.attrgetter("_parameters")

buffers_of: Callable[[nn.Module], dict[str, Any]] = operator.attrgetter("_buffers")

children_of: Callable[[nn.Module], dict[str, Any]] = operator.attrgetter("_modules")

non_persistent: Callable[[nn.Module], set[str]] = operator.attrgetter("_non_persistent_buffers_set")


def register_value(kind: type) -> None:
    """Let torch see the tensor inside a value: an object with `data` and a static `sub`.

    Torch puts anything in the place of a tensor (a number of an axis, None), so none is checked.
    """

    def rebuild(leaves: Iterable[Any], sub: int) -> Any:
        made = object.__new__(kind)
        (made.data,), made.sub = leaves, sub
        return made

    def keyed(value: Any) -> tuple[list[tuple[Any, Any]], int]:
        return [(pytree.GetAttrKey("data"), value.data)], value.sub

    pytree.register_pytree_node(
        kind, lambda value: ([value.data], value.sub), rebuild, flatten_with_keys_fn=keyed,
        serialized_type_name=f"{kind.__module__}.{kind.__qualname__}",
    )  # fmt: skip


def autocast_now() -> dict[str, str]:
    """The devices for which autocast is on, and the type it casts to."""
    return {
        device: str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        for device in ("cpu", "cuda")
        if torch.is_autocast_enabled(device)
    }


any_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled
"""Whether autocast is on for any device; 0.1 µs, where asking for each takes 0.5."""

without_autocast: Callable[[], AbstractContextManager[Any]] = torch._C._DisableAutocast
"""The types that a graph was traced with, whatever autocast would make of them; 0.4 µs."""

transforms: Callable[[], bool] = torch._C._are_functorch_transforms_active
"""Whether a transform of torch.func is under way."""

transformed: Callable[[Tensor], bool] = torch._C._functorch.is_functorch_wrapped_tensor  # pyright: ignore[reportAttributeAccessIssue]
"""Whether a tensor belongs to a transform of torch.func, and has no numbers of its own."""

without_storage: Callable[[Tensor], bool] = Tensor._is_zerotensor
"""Whether a tensor is zero by its kind, and lies nowhere."""


def any_dispatch() -> bool:
    """Whether operations run through a mode of torch: they are captured, or changed."""
    return torch._C._len_torch_dispatch_stack() > 0


def forward_mode() -> bool:
    """Whether tensors may carry tangents, which no layout shows."""
    return forward_ad._current_level >= 0


def apply_of(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """The step of autograd itself, where no transform of torch.func is under way.

    The public `apply` first looks at each tensor for transforms that have ended, 1 µs a tensor.
    """
    return super(torch.autograd.Function, function).apply  # pyright: ignore


def raw_stream(index: int) -> int:
    """CUDA's name for the current stream; torch.cuda.current_stream takes as long as a launch."""
    return torch._C._cuda_getCurrentRawStream(index)


use_count: Callable[[int], int] = torch._C._storage_Use_Count
"""How many tensors and objects refer to a storage, which is given by its `_cdata`."""

view_memory: Callable[[Tensor, Sequence[int], Sequence[int], int], Tensor]

view_memory = torch._C._dynamo.guards._reinterpret_tensor  # pyright: ignore[reportAttributeAccessIssue]
"""A tensor with a size, strides and an offset in the memory of another, as Inductor's code makes
its results: autograd takes it for no view."""

real_transform: Callable[[Tensor, Sequence[int], int, int], Tensor] = (
    torch.ops.aten._fft_c2r.default
)
"""The field of a half spectrum: its axes, a norm (0 none, 1 the root of n, 2 n), the last size."""


@cache
def find_dfti() -> ctypes.CDLL | None:
    """MKL's Fourier transforms, which torch's library hands on where it is built with them."""
    try:
        dfti = ctypes.CDLL(str(FOLDER / "lib" / "libtorch_cpu.so"))
        for name in ("CreateDescriptor_s_md", "CreateDescriptor_d_md", "SetValue",
                     "CommitDescriptor", "ComputeBackward", "FreeDescriptor"):  # fmt: skip
            getattr(dfti, f"Dfti{name}").restype = ctypes.c_long
        dfti.DftiErrorMessage.argtypes = [ctypes.c_long]
        dfti.DftiErrorMessage.restype = ctypes.c_char_p
    except (AttributeError, OSError):  # torch of another system, or built without MKL
        return None
    return dfti


Allocator = Callable[[Sequence[int], Sequence[int], torch.dtype], Tensor]
"""Sizes, strides and a precision -> a tensor of any numbers."""


def find_allocator(device: torch.device) -> Allocator:
    """What makes tensors on a device, whatever torch's default is, as Inductor's code does.

    It takes a fifth of the time of torch.empty_strided.
    """
    native: Any = torch._C
    native = native._dynamo.guards
    if device.type == "cpu":
        return native._empty_strided_cpu
    quick, current = native._empty_strided_cuda, torch.cuda.current_device

    def allocate(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> Tensor:
        if current() == device.index:
            return quick(size, stride, dtype)
        return torch.empty_strided(size, stride, dtype=dtype, device=device)

    return allocate


def abandon_capture(index: int, pool: Any) -> None:
    """Let torch forget a capture of a CUDA graph that failed.

    Its memory would be taken for in use, and in 2.11 random numbers would be refused ever after.
    """
    native: Any = torch._C
    for forget in (native._cuda_endAllocateToPool, native._cuda_releasePool):
        with suppress(RuntimeError):
            forget(index, pool)
    generator = torch.cuda.default_generators[index]
    generator.graphsafe_set_state(generator.clone_state())


def same_layout(values: Sequence[Tensor]) -> Callable[..., bool]:
    """Whether tensors have the type, shape, strides, precision, device, and need of a gradient of
    these. What guards compiled functions takes 0.1 µs a tensor, attributes take 0.6.
    """
    native: Any = torch._C
    guards = native._dynamo.guards.TensorGuards
    check = guards(*values, dynamic_dims_sizes=None, dynamic_dims_strides=None).check

    def same(*given: Tensor) -> bool:
        try:
            # the guards ask a nested tensor for its strides, which ends the process
            return not any(map(_is_nested, given)) and check(*given)
        except TypeError:
            return False

    return same


_nested: Any = Tensor.is_nested

_is_nested: Callable[[Tensor], bool] = _nested.__get__  # 0.1 µs a tensor


def has_hooks(module: nn.Module) -> bool:
    """Whether hooks of its own run beside a module."""
    own = vars(module)
    return any(own[name] for name in HOOKS)


def has_global_hooks() -> bool:
    """Whether hooks run beside all modules, which Dynamo does not guard (torch 2.11 to 2.15)."""
    return bool(torch.nn.modules.module._has_any_global_hook())


def list_global_hooks() -> tuple[int, ...]:
    """The hooks that run beside all modules, by their identity."""
    own = torch.nn.modules.module
    kinds = ("forward", "forward_pre", "backward", "backward_pre")
    return tuple(id(x) for k in kinds for x in getattr(own, f"_global_{k}_hooks").values())


@cache
def _mode_switches() -> frozenset[Any]:
    from torch.amp.autocast_mode import _enter_autocast, _exit_autocast
    from torch.autograd.grad_mode import _enter_inference_mode, _exit_inference_mode

    entered = (_enter_autocast, _exit_autocast, _enter_inference_mode, _exit_inference_mode)
    return frozenset({torch._C._set_grad_enabled, *entered})


def is_mode_switch(target: Any) -> bool:
    """Whether a call in Dynamo's graph switches a mode: gradients, inference, autocast."""
    return target in _mode_switches()


def is_transform(target: Any) -> bool:
    """Whether a call in Dynamo's graph belongs to a transform of torch.func."""
    home = str(getattr(target, "__module__", None))
    return home.startswith(("torch._functorch", "torch._C._functorch"))


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes that operations run under and that may be switched inside a graph."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[str, bool, torch.dtype], ...]
    cached: bool

    @staticmethod
    def now() -> "Modes":
        """Those that are on."""
        kinds = ("cpu", "cuda")
        autocast = [(k, torch.is_autocast_enabled(k), torch.get_autocast_dtype(k)) for k in kinds]
        return Modes(
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(), tuple(autocast),
            torch.is_autocast_cache_enabled(),
        )  # fmt: skip

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Switch to these inside, and back; what is inside may switch others than inference."""
        before = Modes.now()
        inference = nullcontext()
        if before.inference != self.inference:
            inference = torch.inference_mode(self.inference)
        with inference, torch.set_grad_enabled(self.grad):
            try:
                self._switch_autocast()
                yield
            finally:
                before._switch_autocast()

    def restore(self, values: Iterable[Any] = ()) -> None:
        """Switch back to these for good, and leave what is still entered of some values."""
        for value in values:
            if isinstance(value, torch._C._InferenceMode):
                value.__exit__(None, None, None)
        torch._C._set_grad_enabled(self.grad)
        self._switch_autocast()

    def _switch_autocast(self) -> None:
        for kind, on, dtype in self.autocast:
            torch.set_autocast_enabled(kind, on)
            torch.set_autocast_dtype(kind, dtype)
        torch.set_autocast_cache_enabled(self.cached)


def ambient() -> tuple[Any, ...]:
    """The modes and settings that operations run under, and that Inductor compiles for."""
    import torch._inductor.config as inductor

    return (
        Modes.now(), torch.get_default_dtype(), torch.get_default_device(),
        torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision(),
        inductor.get_hash(),
    )  # fmt: skip
