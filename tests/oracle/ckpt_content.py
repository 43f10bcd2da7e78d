# SPDX-License-Identifier: BSD-3-Clause
"""Content of files that PyTorch 2.13 writes, as Python sees it.

ckpt_content.py FOLDER: writes FOLDER/<case>.pt and prints for each a line
"file TAB case" and one per tensor: "name TAB type TAB shape TAB sha256", sorted
by name as `lockstep ckpt digest` sorts them. Cases: those of ckpt_cases.py and
ckpt_optimizers.py, pickle protocols 2 to 5, whole modules, subclasses, numpy
values, and files of a big-endian machine, one of which does not say so.
"""
import hashlib
import io
import os
import shutil
import sys
import warnings
import zipfile

import numpy as np
import torch
from torch import nn

import ckpt_cases
import ckpt_optimizers
from legacy_stream import Python3, ints, name

warnings.filterwarnings("ignore")

UNTYPED = {torch.uint16, torch.uint32, torch.uint64, torch.complex32, torch.float8_e5m2, torch.float8_e4m3fn,
           torch.float8_e5m2fnuz, torch.float8_e4m3fnuz, torch.float8_e8m0fnu, torch.float4_e2m1fn_x2,
           torch.bits8, torch.bits16, torch.bits1x8, torch.bits2x4, torch.bits4x2}
CLASSES = {torch.float64: "Double", torch.float32: "Float", torch.float16: "Half", torch.bfloat16: "BFloat16",
           torch.int64: "Long", torch.int32: "Int", torch.int16: "Short", torch.int8: "Char", torch.uint8: "Byte",
           torch.bool: "Bool", torch.complex128: "ComplexDouble", torch.complex64: "ComplexFloat",
           torch.qint8: "QInt8", torch.quint8: "QUInt8", torch.qint32: "QInt32", torch.quint4x2: "QUInt4x2",
           torch.quint2x4: "QUInt2x4"}
PARTS = {torch.sparse_coo: ("_indices", "_values"), torch.sparse_csr: ("crow_indices", "col_indices", "values"),
         torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
         torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
         torch.sparse_bsc: ("ccol_indices", "row_indices", "values")}


class Sub(torch.Tensor):
    pass


def quantizer(tensor):
    """What the integers stand for, as the digest has it (docs/ckpt_reading.md)."""
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return f"\t{tensor.q_scale():.17g}\t{tensor.q_zero_point()}".encode()
    return (f"\taxis {tensor.q_per_channel_axis()}".encode() + raw_bytes(tensor.q_per_channel_scales()) +
            raw_bytes(tensor.q_per_channel_zero_points()))


def type_and_shape(tensor):
    kind = str(tensor.dtype)[6:] if tensor.dtype in UNTYPED else CLASSES[tensor.dtype]
    return [kind, str(list(tensor.shape))]


def whole_row(name, tensor):
    return "\t".join([name, *type_and_shape(tensor), hashlib.sha256(b"").hexdigest()])


def raw_bytes(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg()
    packed = tensor.dtype in (torch.quint4x2, torch.quint2x4)
    if tensor.numel() == 0:
        return b""
    if tensor.is_quantized and not packed:
        tensor = tensor.int_repr()
    if not packed:
        tensor = tensor.contiguous()
        begin, count = tensor.storage_offset() * tensor.element_size(), tensor.numel() * tensor.element_size()
    else:
        row = {torch.quint4x2: 2, torch.quint2x4: 4}[tensor.dtype]
        begin, count = 0, tensor.numel() // tensor.shape[-1] * -(-tensor.shape[-1] // row)
    view = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage(), begin, (count,), (1,))
    return bytes(view.tolist())


def tensor_rows(name, tensor, rows):
    if tensor.device.type == "meta":
        rows.append(whole_row(name, tensor))
        return
    below = name + "." if name else ""
    if tensor.layout in PARTS:
        rows.append(whole_row(name, tensor))
        for part in PARTS[tensor.layout]:
            tensor_rows(below + part.lstrip("_"), getattr(tensor, part)().detach(), rows)
    elif tensor.is_nested and tensor.layout == torch.jagged:
        tensor_rows(below + "values", tensor._values, rows)
        tensor_rows(below + "offsets", tensor._offsets, rows)
        for key, part in tensor._metadata_cache.items():
            tensor_rows(f"{below}<args>.2.0._metadata_cache.{key}", part, rows)
    elif tensor.is_nested:
        tensor_rows(below + "values", tensor.values(), rows)
        tensor_rows(below + "sizes", tensor._nested_tensor_size(), rows)
        tensor_rows(below + "strides", tensor._nested_tensor_strides(), rows)
        tensor_rows(below + "offsets", tensor._nested_tensor_storage_offsets(), rows)
    else:
        plain = tensor.detach().as_subclass(torch.Tensor)
        content = raw_bytes(plain) + (quantizer(plain) if plain.is_quantized else b"")
        rows.append("\t".join([name, *type_and_shape(plain), hashlib.sha256(content).hexdigest()]))


def walk(name, value, rows):
    below = name + "." if name else ""
    if isinstance(value, torch.Tensor):
        tensor_rows(name, value, rows)
    elif isinstance(value, nn.Module):
        for key, part in value.state_dict().items():
            walk(below + key, part, rows)
    elif isinstance(value, torch.UntypedStorage):
        tensor_rows(below + "<args>.0", torch.empty(0, dtype=torch.uint8).set_(value), rows)
    elif isinstance(value, dict):
        for key, part in value.items():
            walk(below + str(key), part, rows)
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            walk(below + str(index), part, rows)


def whole_models():
    net = ckpt_cases.net()
    net.register_buffer("scratch", torch.ones(2), persistent=False)
    return {"plain": net, "parallel": nn.DataParallel(net), "lstm": nn.LSTM(2, 3)}


def others():
    return {"subclass": torch.ones(2).as_subclass(Sub), "range": range(3), "slice": slice(1, 2), "bytes": b"",
            "frozen": frozenset([1, 2]), "array": np.arange(6).reshape(2, 3), "scalar": np.float64(0.5),
            "dtype": np.dtype("int8"), "ellipsis": ..., "big": 2**3000, "after": torch.ones(3)}


def big_endian(path, names, has_record):
    """The same archive as a big-endian machine writes it; before torch 2.1 without the record of the byte order."""
    little = io.BytesIO()
    value = {str(d): ckpt_cases.of_dtype(d) for d in ckpt_cases.PLAIN}
    torch.save(value, little)
    widths = {f"archive/data/{i}": d.itemsize // (2 if d.is_complex else 1) for i, d in enumerate(ckpt_cases.PLAIN)}
    with zipfile.ZipFile(little) as source, zipfile.ZipFile(path, "w") as target:
        for record in source.infolist():
            data = source.read(record)
            width = widths.get(record.filename, 1)
            if record.filename.endswith("/byteorder"):
                if not has_record:
                    continue
                data = b"big"
            data = np.frombuffer(data, f"V{width}") if width > 1 else data
            if width > 1:
                data = np.frombuffer(data.tobytes(), "u1").reshape(-1, width)[:, ::-1].tobytes()
            # Every second record is deflated: readers inflate it.
            packed = zipfile.ZIP_DEFLATED if len(names) % 2 else zipfile.ZIP_STORED
            names.append(record.filename)
            target.writestr(record.filename, data, packed)
    read = torch.load(path, weights_only=True)
    assert all(torch.equal(read[key], value[key]) for key in value)
    return value


def old_body(say, kind, make, state):
    """{'w': an object of torch.`kind` that `make` makes and BUILD fills}"""
    return b"}" + say.text("w") + name(*kind) + make + state + b"bs"


def put_storage(say, kind, key, numel):
    return (b"(" + say.text("storage") + name("torch", kind) + say.text(key)
            + say.text("cpu") + say.number(numel) + b"tQ")


def old_tensors():
    """Tensors as torch 0.1 to 0.3 pickled them, in the archive of today."""
    say = Python3
    hooks = name("collections", "OrderedDict") + b")R"

    def view(kind):
        return b"(" + put_storage(say, kind, "0", 6) + say.number(1) + ints(say, (2,)) + ints(say, (2,)) + b"t"

    def data(kind):
        return name("torch._utils", "_rebuild_tensor") + view(kind) + b"R"

    parameter = ("torch.nn.parameter", "Parameter")
    yield "old_tensor", old_body(say, ("torch", "Tensor"), b")R", view("FloatStorage"))
    yield "old_new_tensor", old_body(say, ("torch", "Tensor"), b")\x81", view("FloatStorage"))
    for kind in ("Float", "Int"):
        yield f"old_{kind}", old_body(say, ("torch", kind + "Tensor"), b")R", view(kind + "Storage"))
    yield "old_parameter", old_body(say, parameter, data("FloatStorage") + b"\x85R", b"\x88\x89" + hooks + b"\x87")
    yield "old_whole_parameter", old_body(
        say, parameter, b")\x81", b"(" + data("FloatStorage") + b"N" + hooks + b"\x88\x89t")
    yield "old_tensor_flags", old_body(
        say, ("torch._utils", "_rebuild_tensor"), view("FloatStorage") + b"R", b"\x89\x89" + hooks + b"\x87")
    empty = [name("torch._utils", "_rebuild_tensor") + b"(" + put_storage(say, kind, "0", 0) + say.number(0)
             + ints(say, (0,)) + ints(say, (1,)) + b"tR" for kind in ("FloatStorage", "IntStorage", "FloatStorage")]
    yield "empty_views", b"](" + b"".join(empty) + b"e"


def write_archive(path, body, data):
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("a/data.pkl", b"\x80\x02" + body + b".")
        target.writestr("a/data/0", data)
        target.writestr("a/version", "3\n")


def rezipped(folder, source):
    """What `zip -r` and shutil.make_archive make of an unpacked archive."""
    unpacked = os.path.join(folder, "unpacked")
    with zipfile.ZipFile(source) as archive:
        archive.extractall(unpacked)
    top = os.listdir(unpacked)[0]
    yield shutil.make_archive(os.path.join(folder, "rezip_deflated"), "zip", unpacked, top)
    stored = os.path.join(folder, "rezip_stored.zip")
    with zipfile.ZipFile(stored, "w") as target:
        for at, folders, files in os.walk(os.path.join(unpacked, top)):
            for entry in [at, *(os.path.join(at, file) for file in files)]:
                target.write(entry, os.path.relpath(entry, unpacked))
    yield stored


def main(folder):
    def show(case, value):
        rows = []
        walk("", value, rows)
        print(f"file\t{case}", *sorted(rows), sep="\n")

    def save(case, value, **options):
        torch.save(value, os.path.join(folder, case + ".pt"), **options)
        show(case, value)

    for case, make in ckpt_cases.CASES.items():
        save(case, make())
    for case, state in ckpt_optimizers.states().items():
        save(case, state)
    for protocol in (2, 3, 4, 5):
        torch.manual_seed(protocol)
        save(f"protocol_{protocol}", ckpt_cases.CASES["sgd"](), pickle_protocol=protocol)
        save(f"others_{protocol}", others(), pickle_protocol=protocol)
        save(f"model_{protocol}", whole_models(), pickle_protocol=protocol)
    for case, body in old_tensors():
        path = os.path.join(folder, case + ".pt")
        write_archive(path, body, b"" if case == "empty_views" else bytes(range(24)))
        show(case, torch.load(path, weights_only=False))
    for path in list(rezipped(folder, os.path.join(folder, "protocol_2.pt"))):
        case = os.path.splitext(path)[0]
        os.rename(path, case + ".pt")
        show(os.path.basename(case), torch.load(case + ".pt", weights_only=True))
    show("big_endian", big_endian(os.path.join(folder, "big_endian.pt"), [], has_record=True))
    torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
    show("big_endian_unsaid", big_endian(os.path.join(folder, "big_endian_unsaid.pt"), [], has_record=False))


if __name__ == "__main__":
    main(sys.argv[1])
