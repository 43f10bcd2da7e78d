# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tar files of testdata, as torch 0.1.9 made them, and broken ones.

    .venv/bin/python tests/oracle/make_tar.py [FOLDER of valid and corrupt]
torch 2.13 cannot write the format but reads it: what it finds in each valid
file is compared with what was meant.
"""
import io
import struct
import tarfile

import torch

import make_testdata as data
from legacy_stream import (INFO, Python2, Python3, name, ordered_dict,
                           parameter_v1, pickled, plain)

SOURCE = "class Net(nn.Module):\n    pass\n"


def class_of(kind):
    """"cuda.LongTensor" of torch."""
    module, _, attribute = f"torch.{kind}".rpartition(".")
    return name(module, attribute)


def tuple_of(*parts):
    return b"(" + b"".join(parts) + b"t"


def reference(say, key):
    """Stands for a tensor or storage: its number as text."""
    return say.text(str(key)) + b"Q"


def storages(say, items, views=()):
    """`items`: (number, class, location, elements as bytes, how many)."""
    out = pickled(say.number(len(items)))
    for key, kind, location, payload, numel in items:
        row = tuple_of(say.number(key), say.text(location), class_of(kind))
        out += pickled(row) + struct.pack("<q", numel) + payload
    rows = b"".join(tuple_of(*map(say.number, view)) + b"a" for view in views)
    return out + pickled(b"]" + rows)


def tensors(say, items):
    """`items`: (number, storage or None, class, size, stride, offset)."""
    out = pickled(say.number(len(items)))
    for key, of, kind, size, stride, offset in items:
        on = b"N" if of is None else say.number(of)
        out += pickled(tuple_of(say.number(key), on, class_of(kind)))
        out += struct.pack("<ii", len(size), 0)
        out += struct.pack(f"<{2 * len(size) + 1}q", *size, *stride, offset)
    return out


def archive(members, change=lambda info: None):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for member, payload in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(payload)
            info.mtime = 1485000000.25  # a fraction needs an extended header
            change(info)
            tar.addfile(info, io.BytesIO(payload))
    return out.getvalue()


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values), len(values)


def checkpoint(say=Python3, **changed):
    """A state_dict: two tensors on one storage, one on a view, one on a GPU."""
    members = {
        "sys_info": pickled(plain(say, INFO)),
        "pickle": pickled(ordered_dict(say, [
            ("weight", reference(say, 11)), ("row", reference(say, 12)),
            ("part", reference(say, 13)), ("count", reference(say, 14))])),
        "tensors": tensors(say, [
            (11, 1, "FloatTensor", (2, 3), (3, 1), 0), (12, 1, "FloatTensor", (3,), (1,), 3),
            (13, 2, "FloatTensor", (2,), (2,), 1), (14, 3, "cuda.LongTensor", (1,), (1,), 0)]),
        "storages": storages(
            say, [(1, "FloatStorage", "cpu", *floats(0, 1, 2, 3, 4, 5)),
                  (3, "LongStorage", "cuda:0", struct.pack("<q", 9), 1)],
            [(2, 1, 2, 4)]),
    }
    members.update(changed)
    return members


def meaning():
    base = torch.arange(6.0)
    return {"weight": base.view(2, 3), "row": base[3:], "part": base[3::2],
            "count": torch.tensor([9])}


def whole_model():
    """A module with the source of its class; its parameter as torch 0.1.9 wrote it."""
    say = Python2
    module = tuple_of(name("model", "Net"), say.text("/home/me/model.py"),
                      say.text(SOURCE)) + b"Q"
    parameter = parameter_v1(say, reference(say, 11))
    parts = [("_parameters", ordered_dict(say, [("weight", parameter)])),
             ("_buffers", ordered_dict(say, [("empty", reference(say, 12))])),
             ("_modules", ordered_dict(say, []))]
    state = b"}(" + b"".join(say.text(k) + v for k, v in parts) + b"u"
    return {
        "sys_info": pickled(plain(say, INFO)),
        "pickle": pickled(module + b")\x81" + state + b"b"),
        "tensors": tensors(say, [(11, 1, "DoubleTensor", (2,), (1,), 0),
                                 (12, None, "IntTensor", (), (), 0)]),
        "storages": storages(say, [(1, "DoubleStorage", "cpu", struct.pack("<2d", 1, 2), 2)]),
    }


def flat(value):
    return {key: tensor.flatten().tolist() for key, tensor in value.items()}


def valid(folder):
    for file, say in (("tar_2017.pth", Python2), ("tar_python3.pth", Python3)):
        path = folder / file
        path.write_bytes(archive(checkpoint(say)))
        read = torch.load(path, map_location="cpu", weights_only=False)
        assert flat(read) == flat(meaning()), file
        data.finish(path, {**data.expectation(meaning()), "format": "tar", "crc": "absent"})
    path = folder / "tar_whole_model.pth"
    path.write_bytes(archive(whole_model()))
    value = {"weight": torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64)),
             "empty": torch.empty(0, dtype=torch.int32)}
    data.finish(path, {**data.expectation(value), "format": "tar", "crc": "absent", "unsafe": 1})


def typed(kind, **more):
    def change(info):
        if info.name == "tensors":
            info.type = kind
            info.linkname = "/etc/passwd" if kind in (tarfile.LNKTYPE, tarfile.SYMTYPE) else ""
            info.pax_headers = more
    return change


def with_header(payload, at, new):
    """Replaces bytes of the first header and makes its checksum right."""
    block = bytearray(payload[:512])
    block[at:at + len(new)] = new
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + payload[512:]


def broken():
    """File name, bytes, code, detail."""
    say = Python3
    good = archive(checkpoint())
    bare = archive(checkpoint(), lambda info: setattr(info, "mtime", 0))
    corrupt, unsupported = "kCorrupt", "kUnsupported"
    kinds = {"link": tarfile.SYMTYPE, "hardlink": tarfile.LNKTYPE, "device": tarfile.CHRTYPE,
             "fifo": tarfile.FIFOTYPE, "sparse": tarfile.GNUTYPE_SPARSE}
    for what, kind in kinds.items():
        yield f"tar_{what}.pth", archive(checkpoint(), typed(kind)), corrupt, "E_TAR"
    sparse = typed(tarfile.REGTYPE, **{"GNU.sparse.major": "1"})
    yield "tar_pax_sparse.pth", archive(checkpoint(), sparse), corrupt, "E_TAR"
    yield "tar_outside.pth", archive(
        {**checkpoint(), "../../x": b"evil"}), corrupt, "E_TAR"
    yield "tar_absolute.pth", archive({**checkpoint(), "/etc/x": b"evil"}), corrupt, "E_TAR"
    yield "tar_checksum.pth", bare[:130] + b"7" + bare[131:], corrupt, "E_TAR"
    yield "tar_size_lies.pth", with_header(bare, 124, b"77777777777"), corrupt, "E_TAR"
    yield "tar_size_binary.pth", with_header(bare, 124, b"\x80" + b"\xff" * 11), corrupt, "E_TAR"
    yield "tar_size_text.pth", with_header(bare, 124, b"12x"), corrupt, "E_TAR"
    yield "tar_twice.pth", bare[:-tarfile.BLOCKSIZE * 2].rstrip(b"\0") + bytes(
        -len(bare[:-tarfile.BLOCKSIZE * 2].rstrip(b"\0")) % 512) + bare, corrupt, "E_TAR"
    yield "tar_cut.pth", good[:1300], corrupt, "E_TAR"
    yield "tar_no_pickle.pth", archive({"notes.txt": b"hello"}), unsupported, "E_WRONG_FORMAT"
    yield "tar_in_folder.pth", archive(
        {f"model/{k}": v for k, v in checkpoint().items()}), unsupported, "E_WRONG_FORMAT"

    def with_(**members):
        return archive(checkpoint(**members))
    one = [(1, "FloatStorage", "cpu", *floats(0, 1, 2, 3, 4, 5))]
    yield "tar_storage_cut.pth", with_(storages=storages(
        say, [(1, "FloatStorage", "cpu", b"", 6)])), corrupt, "E_TAR"
    yield "tar_storage_huge.pth", with_(storages=storages(
        say, [(1, "FloatStorage", "cpu", b"", 2**62)])), corrupt, "E_OVERFLOW"
    yield "tar_storage_class.pth", with_(storages=storages(
        say, [(1, "FloatTensor", "cpu", b"", 0)])), corrupt, "E_TAR"
    yield "tar_storage_missing.pth", with_(storages=storages(say, one)), corrupt, "E_TAR"
    yield "tar_view_missing.pth", with_(
        storages=storages(say, one, [(2, 7, 0, 1)])), corrupt, "E_TAR"
    yield "tar_view_past.pth", with_(
        storages=storages(say, one, [(2, 1, 3, 4)])), corrupt, "E_VIEW_BOUNDS"
    yield "tar_tensor_past.pth", with_(tensors=tensors(
        say, [(11, 1, "FloatTensor", (2, 4), (4, 1), 0)])), corrupt, "E_VIEW_BOUNDS"
    yield "tar_tensor_rank.pth", with_(tensors=pickled(say.number(1)) + pickled(tuple_of(
        say.number(11), say.number(1), name("torch", "FloatTensor")))
        + struct.pack("<ii", 2**30, 0)), corrupt, "E_RANK"
    yield "tar_count_lies.pth", with_(tensors=pickled(say.number(2**40))), corrupt, "E_PICKLE"
    yield "tar_id_unknown.pth", with_(pickle=pickled(reference(say, 99))), corrupt, "E_TAR"
    yield "tar_id_type.pth", with_(pickle=pickled(say.number(11) + b"Q")), corrupt, "E_TYPE"


def main():
    data.write_corpus(valid, broken())


if __name__ == "__main__":
    main()
