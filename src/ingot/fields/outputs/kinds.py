"""[TensorOutputs] -> the outputs of fields that a file asks for, and who writes each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from ingot.errors import Problem
from ingot.fields.blocks.domain import Domain
from ingot.fields.blocks.options import Reader
from ingot.fields.outputs import xdmf
from ingot.fields.outputs.table import Outputs
from ingot.fields.outputs.vti import VTI, VTITensorOutput, VTIWriter
from ingot.fields.outputs.xdmf import XDMF, XDMFTensorOutput, XDMFWriter, snapshot
from ingot.fields.spaces import Space
from ingot.fields.step import State
from ingot.hit import Block

__all__ = ["KINDS", "read_tensor_outputs", "take_frame", "writer_of"]

KINDS: dict[str, type[XDMFTensorOutput | VTITensorOutput]] = {
    "XDMFTensorOutput": XDMFTensorOutput,
    "VTITensorOutput": VTITensorOutput,
}


def writer_of(
    output: XDMF | VTI, domain: Domain, folder: Path, space: Space
) -> XDMFWriter | VTIWriter:
    """What writes an output of a run on a space."""
    if isinstance(output, VTI):
        return VTIWriter(output, domain, folder, space.share)
    return XDMFWriter(output, domain, folder, space.slabs, space.share)


def take_frame(writer: XDMFWriter | VTIWriter, state: State, time: float) -> Callable[[], None]:
    """What adds a frame of the present fields, whatever becomes of them until it is called."""
    names = sorted(writer.output.options.buffer)
    return partial(writer.write, {name: snapshot(state, name) for name in names}, time)


def read_tensor_outputs(
    blocks: Iterable[Block],
    outputs: Outputs,
    stem: str,
    reader: Reader,
    *,
    compatible: bool,
    shared: bool = True,
) -> tuple[XDMF | VTI, ...]:
    """The outputs of a [TensorOutputs] block; shared: whether ranks may have parts of the box."""
    found: dict[tuple[str | None, str], XDMF | VTI] = {}
    with_hdf5: list[Block] = []
    for each in blocks:
        kind = reader.type_of(each, KINDS)
        options = None if kind is None else reader.made(each, kind)
        if options is None:
            continue
        if options.output_mode and len(options.output_mode) != len(options.buffer):
            message = (
                f"output_mode has {len(options.output_mode)} entries, buffer {len(options.buffer)}"
            )
            reader.problems.append(
                Problem("wrong-value", message, each.span, "give a mode for each buffer")
            )
        base = options.file_base or outputs.options.file_base or stem
        if (each.type, base) in found:
            message = f"two outputs write to the files '{base}'"
            fix = "give one of them a file_base"
            reader.problems.append(Problem("duplicate-block", message, each.span, fix))
        if isinstance(options, VTITensorOutput):
            found[each.type, base] = VTI(options, base)
        else:
            found[each.type, base] = XDMF(options, base)
            reader.tell_idle_fields(each, options, () if shared else ("merged",))
            with_hdf5 += [each] if options.enable_hdf5 else []
    if compatible and len(with_hdf5) > 1 and not xdmf.thread_safe():
        # The reference writes each output in a thread of its own.
        message = "Using an hdf5 library that is not threadsafe and multiple XDMF output objects"
        fix = "set enable_hdf5 = false in all but one, or marlin_compatible = false in [Problem]"
        reader.problems.append(Problem("hdf5-threads", message, with_hdf5[1].span, fix))
    return tuple(found.values())
