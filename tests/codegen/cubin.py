"""What a cubin says of its kernels: registers of a thread, and bytes of its stack."""

import struct
from collections.abc import Iterator

REGISTERS, STACK = 0x2F, 0x11
"""Attributes of the section `.nv.info`: a symbol of the table, and a number."""


def read_kernels(cubin: bytes) -> dict[str, dict[str, int]]:
    """By name of each function: its registers, and the bytes of its local memory."""
    sections = dict(_read_sections(cubin))
    table, names = sections[".symtab"], sections[".strtab"]
    found: dict[str, dict[str, int]] = {}
    for attribute, symbol, number in _read_attributes(sections[".nv.info"]):
        word = {REGISTERS: "registers", STACK: "stack"}.get(attribute)
        if word is not None:
            (at,) = struct.unpack_from("<I", table, 24 * symbol)
            name = names[at : names.index(b"\0", at)].decode()
            found.setdefault(name, {})[word] = number
    return found


def _read_sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """Of a file of ELF, 64 bits."""
    (headers,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<3H", cubin, 58)
    rows = [struct.unpack_from("<IIQQQQ", cubin, headers + size * k) for k in range(count)]
    _, _, _, _, begin, _ = rows[names]
    for name, kind, _, _, offset, length in rows:
        end = cubin.index(b"\0", begin + name)
        yield cubin[begin + name : end].decode(), b"" if kind == 8 else cubin[offset:][:length]


def _read_attributes(info: bytes) -> Iterator[tuple[int, int, int]]:
    """The attributes that name a symbol: each is a form, a kind, a length, and its numbers."""
    at = 0
    while at < len(info):
        form, attribute, length = struct.unpack_from("<BBH", info, at)
        if form == 4 and length == 8:
            yield (attribute, *struct.unpack_from("<II", info, at + 4))
        at += 4 + (length if form == 4 else 0)
