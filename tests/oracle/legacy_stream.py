# SPDX-License-Identifier: BSD-3-Clause
"""Builds files as PyTorch 0.1 to 1.5 wrote them, opcode by opcode.

Old writers cannot be installed any more, so their habits are spelled out here:
Python 2 strings, `_rebuild_tensor`, views of storages, classes with source.
"""
import struct

MAGIC = 0x1950A86A20F9469CFC6C
INFO = {"protocol_version": 1001, "little_endian": True,
        "type_sizes": {"short": 2, "int": 4, "long": 4}}


def name(module, attribute):
    return b"c" + f"{module}\n{attribute}\n".encode()


class Python3:
    """Strings as text, integers as BININT."""

    @staticmethod
    def text(value):
        data = value.encode()
        return b"X" + struct.pack("<I", len(data)) + data

    @staticmethod
    def number(value):
        if -2**31 <= value < 2**31:
            return b"J" + struct.pack("<i", value)
        data = value.to_bytes(9, "little", signed=True)
        return b"\x8a" + bytes([len(data)]) + data


class Python2(Python3):
    """Strings as bytes, sizes as long integers."""

    @staticmethod
    def text(value):
        data = value.encode()
        short = b"U" + bytes([len(data)])
        return (short if len(data) < 256 else b"T" + struct.pack("<I", len(data))) + data

    @staticmethod
    def number(value):
        if value == 0:
            return b"\x8a\x00"
        data = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
        return b"\x8a" + bytes([len(data)]) + data


def plain(say, value):
    """Pickle of booleans, integers, strings, lists and dicts."""
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return say.number(value)
    if isinstance(value, str):
        return say.text(value)
    if isinstance(value, list):
        return b"](" + b"".join(plain(say, v) for v in value) + b"e"
    pairs = b"".join(plain(say, k) + plain(say, v) for k, v in value.items())
    return b"}(" + pairs + b"u"


def ints(say, values):
    return b"(" + b"".join(map(say.number, values)) + b"t"


def storage(say, key, numel, kind="FloatStorage", location="cpu", view=None):
    """Persistent id; `view` is (key, offset, numel)."""
    last = b"N" if view is None else (
        b"(" + say.text(view[0]) + say.number(view[1]) + say.number(view[2]) + b"t")
    return (b"(" + say.text("storage") + name("torch", kind) + say.text(key)
            + say.text(location) + say.number(numel) + last + b"tQ")


def tensor_v1(say, of, offset, size, stride):
    """How torch 0.1.10 to 0.3 wrote a tensor."""
    return (name("torch._utils", "_rebuild_tensor") + b"(" + of + say.number(offset)
            + ints(say, size) + ints(say, stride) + b"tR")


def parameter_v1(say, data):
    """torch 0.2 and 0.3: Parameter(data), then (requires_grad, volatile, hooks)."""
    hooks = name("collections", "OrderedDict") + b")R"
    return (name("torch.nn.parameter", "Parameter") + data + b"\x85R"
            + b"\x88\x89" + hooks + b"\x87b")


def parameter_v0(say, data, kind=("torch.nn.parameter", "Parameter")):
    """torch 0.1: an empty object, then (data, grad, hooks, requires_grad, volatile)."""
    hooks = name("collections", "OrderedDict") + b")R"
    return name(*kind) + b")\x81(" + data + b"N" + hooks + b"\x88\x89tb"


def variable(say, data):
    """torch 0.2: Variable(data), then (requires_grad, volatile, hooks)."""
    hooks = name("collections", "OrderedDict") + b")R"
    return (name("torch.autograd.variable", "Variable") + data + b"\x85R"
            + b"\x89\x88" + hooks + b"\x87b")


def module_class(say, module, attribute, file, source):
    """A class whose source travels with it."""
    return (b"(" + say.text("module") + name(module, attribute)
            + say.text(file) + say.text(source) + b"tQ")


def ordered_dict(say, items):
    """Python 2 gives the constructor a list of pairs, Python 3 sets items."""
    pairs = [(say.text(k), v) for k, v in items]
    new = name("collections", "OrderedDict")
    if say is Python2:
        return new + b"](" + b"".join(b"](" + k + v + b"e" for k, v in pairs) + b"e\x85R"
    return new + b")R(" + b"".join(k + v for k, v in pairs) + b"u"


def pickled(body):
    return b"\x80\x02" + body + b"."


def stream(say, body, blobs, magic=MAGIC, version=1001, keys=None):
    """A whole file; `blobs` maps a key to (number of elements, bytes)."""
    order = sorted(blobs) if keys is None else keys
    head = [b"\x8a\x0a" + magic.to_bytes(10, "little"), plain(say, version),
            plain(say, INFO), body, plain(say, order)]
    return b"".join(map(pickled, head)) + b"".join(
        struct.pack("<q", blobs[key][0]) + blobs[key][1]
        for key in order if key in blobs)
