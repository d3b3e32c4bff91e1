"""Functions of a GPU, as far as they can be tried without one."""

import ctypes
import gc
import weakref

from ingot.codegen.cuda import DeviceFunction


class Structure(ctypes.Array[ctypes.c_int64]):
    """Three numbers that can be referred to weakly."""

    _type_, _length_ = ctypes.c_int64, 3


def test_what_starts_a_function_keeps_its_structure_alive() -> None:
    task = Structure(1, 2, 3)
    alive = weakref.ref(task)
    start = DeviceFunction.bind(DeviceFunction.__new__(DeviceFunction), 1, 128, task)
    del task
    gc.collect()
    assert alive() is not None
    del start
    gc.collect()
    assert alive() is None
