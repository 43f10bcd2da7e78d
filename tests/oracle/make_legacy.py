# SPDX-License-Identifier: BSD-3-Clause
"""Writes the legacy files of testdata: valid ones and broken ones.

    .venv/bin/python tests/oracle/make_legacy.py [FOLDER of valid and corrupt]
The keys in files of the first kind are addresses, so they change from run to
run, their content does not. The first kind is saved by torch 2.13 in the format of 1.5, the second built as
older versions wrote it (legacy_stream.py).
"""
import struct

import torch

import make_testdata as data
from legacy_stream import (Python2, Python3, module_class, ordered_dict, parameter_v0,
                           parameter_v1, storage, stream, tensor_v1, variable)

SOURCE = "class Net(nn.Module):\n    def forward(self, x):\n        return self.fc(x)\n"


def floats(*values):
    return len(values), struct.pack(f"<{len(values)}f", *values)


def finish(path, payload, value=None, **expected):
    path.write_bytes(payload)
    rows = data.expectation(value) if value is not None else {}
    data.finish(path, {**rows, **expected})


def saved(folder, file, value, protocol=2, **more):
    path = folder / file
    torch.save(value, path, _use_new_zipfile_serialization=False, pickle_protocol=protocol)
    data.finish(path, {**data.expectation(value), "format": "legacy", "crc": "absent", **more})


def built(folder, file, payload, value, **more):
    finish(folder / file, payload, value, **{"format": "legacy", "crc": "absent", **more})


def python2_weights():
    """A state_dict of 2017: Python 2, GPU, tensors of version 1."""
    say = Python2
    weight = tensor_v1(say, storage(say, "94", 6, location="cuda:0"), 0, (2, 3), (3, 1))
    bias = tensor_v1(say, storage(say, "1200", 2, location="cuda:0"), 0, (2,), (1,))
    body = ordered_dict(say, [("module.fc.weight", weight), ("module.fc.bias", bias)])
    blobs = {"94": floats(0, 1, 2, 3, 4, 5), "1200": floats(7, 8)}
    value = {"module.fc.weight": torch.arange(6.0).view(2, 3),
             "module.fc.bias": torch.tensor([7.0, 8.0])}
    return stream(say, body, blobs), value


def storage_views():
    """Two tensors on parts of one storage, as torch 0.1 saved them."""
    say = Python3
    def part(key, offset, numel):
        return storage(say, "5", 10, view=(key, offset, numel))
    body = b"}(" + b"".join([
        say.text("whole"), tensor_v1(say, storage(say, "5", 10), 0, (10,), (1,)),
        say.text("front"), tensor_v1(say, part("6", 0, 4), 0, (2, 2), (2, 1)),
        say.text("back"), tensor_v1(say, part("7", 4, 6), 1, (5,), (1,)),
        say.text("again"), tensor_v1(say, part("7", 4, 6), 0, (3,), (2,))]) + b"u"
    base = torch.arange(10.0)
    value = {"whole": base, "front": base[:4].view(2, 2), "back": base[5:], "again": base[4::2]}
    return stream(say, body, {"5": floats(*range(10))}), value


def variables():
    """Parameters and variables of torch 0.1 to 0.3; the first appears twice."""
    say = Python2
    def data(offset):
        return tensor_v1(say, storage(say, "5", 6), offset, (2,), (1,))
    first = parameter_v0(say, data(0)) + b"q\x07"
    body = b"}(" + b"".join([
        say.text("first"), first, say.text("again"), b"h\x07",
        say.text("second"), parameter_v1(say, data(2)),
        say.text("third"), variable(say, data(4))]) + b"u"
    base = torch.arange(6.0)
    value = {"first": torch.nn.Parameter(base[:2]), "again": torch.nn.Parameter(base[:2]),
             "second": torch.nn.Parameter(base[2:4]), "third": base[4:]}
    return stream(say, body, {"5": floats(*range(6))}), value


def whole_model():
    """A model of 2017 with the source of its class."""
    say = Python2
    def entries(items):
        return ordered_dict(say, items)
    def state(**parts):
        order = ["_parameters", "_buffers", "_modules"]
        pairs = b"".join(say.text(k) + parts.get(k, entries([])) for k in order)
        return b"}(" + pairs + say.text("training") + b"\x88" + b"ub"
    weight = parameter_v1(say, tensor_v1(say, storage(say, "20", 4), 0, (2, 2), (2, 1)))
    scale = tensor_v1(say, storage(say, "21", 1, location="cuda:3"), 0, (1,), (1,))
    linear = (module_class(say, "torch.nn.modules.linear", "Linear", "/usr/linear.py",
                           "class Linear(Module):\n    pass\n") + b")\x81"
              + state(_parameters=entries([("weight", weight), ("bias", b"N")])))
    net = (module_class(say, "model", "Net", "/home/me/model.py", SOURCE) + b")\x81"
           + state(_modules=entries([("fc", linear)]), _buffers=entries([("scale", scale)])))
    fc_weight = torch.nn.Parameter(torch.arange(4.0).view(2, 2))
    value = {"scale": torch.tensor([0.5]), "fc.weight": fc_weight}
    return stream(say, net, {"20": floats(0, 1, 2, 3), "21": floats(0.5)}), value


def without_sources(save, *args, **how):
    """Sources of the wheel's classes are not ours to keep: one line stands for each."""
    real = torch.serialization.get_source_lines_and_file
    torch.serialization.get_source_lines_and_file = lambda cls: (
        [f"class {cls.__name__}:\n", "    pass\n"], 1, "/usr/lib/torch.py")
    save(*args, **how)
    torch.serialization.get_source_lines_and_file = real


def valid(folder):
    saved(folder, "legacy_dtypes.pt", data.plain_dtypes())
    saved(folder, "legacy_v3_dtypes.pt", data.v3_dtypes())
    saved(folder, "legacy_views.pt", data.views())
    saved(folder, "legacy_training.pth.tar", data.training())
    saved(folder, "legacy_values.pt", data.values())
    without_sources(saved, folder, "legacy_model.pt", data.small_net(), unsafe=4)
    for protocol in (1, 3, 4, 5):
        saved(folder, f"legacy_protocol{protocol}.pt", {"w": torch.arange(3.0), "n": 7}, protocol)
    built(folder, "legacy_python2.pth", *python2_weights())
    built(folder, "legacy_storage_views.pt", *storage_views())
    built(folder, "legacy_variables.pt", *variables(), unsafe=1)
    built(folder, "legacy_whole_2017.pt", *whole_model(), unsafe=2)


def one(**how):
    say = Python3
    body = b"}(" + say.text("w") + tensor_v1(
        say, storage(say, "5", 4, **how), 0, (2, 2), (2, 1)) + b"u"
    return body, {"5": floats(0, 1, 2, 3)}


def broken():
    """File name, bytes, code, detail."""
    say = Python3
    body, blobs = one()
    good = stream(say, body, blobs)
    corrupt, unsupported = "kCorrupt", "kUnsupported"
    yield "legacy_magic.pt", stream(say, body, blobs, magic=5 << 72), corrupt, "E_LEGACY_MAGIC"
    yield "legacy_magic_cut.pt", good[:8], corrupt, "E_TRUNCATED"
    yield "legacy_version.pt", stream(
        say, body, blobs, version=1002), unsupported, "E_LEGACY_VERSION"
    yield "legacy_keys_more.pt", stream(
        say, body, {**blobs, "6": floats(1)}), corrupt, "E_LEGACY_KEYS"
    yield "legacy_keys_fewer.pt", stream(say, body, blobs, keys=[]), corrupt, "E_LEGACY_KEYS"
    yield "legacy_keys_twice.pt", stream(
        say, body, blobs, keys=["5", "5"]), corrupt, "E_LEGACY_KEYS"
    yield "legacy_keys_ints.pt", stream(say, body, blobs, keys=[5]), corrupt, "E_LEGACY_KEYS"
    yield "legacy_numel.pt", stream(
        say, body, {"5": floats(0, 1, 2)}), corrupt, "E_LEGACY_NUMEL"
    yield "legacy_numel_negative.pt", stream(
        say, body, {"5": (-1, b"")}), corrupt, "E_LEGACY_NUMEL"
    yield "legacy_short.pt", good[:-1], corrupt, "E_LEGACY_SHORT"
    yield "legacy_no_blob.pt", good[:-20], corrupt, "E_LEGACY_SHORT"
    yield "legacy_cut_pickle.pt", good[:len(good) // 2], corrupt, "E_TRUNCATED"
    for what, view in {"past": ("6", 2, 3), "negative": ("6", -1, 2)}.items():
        yield f"legacy_view_{what}.pt", stream(
            say, *one(view=view)), corrupt, "E_VIEW_BOUNDS"
    yield "legacy_view_type.pt", stream(say, *one(view=("6", 0, 2**70))), corrupt, "E_TYPE"
    small = tensor_v1(say, storage(say, "5", 4, view=("6", 0, 2)), 0, (2, 2), (2, 1))
    yield "legacy_view_small.pt", stream(
        say, b"}" + say.text("w") + small + b"s", blobs), corrupt, "E_VIEW_BOUNDS"
    both = b"]" + storage(say, "5", 4) + b"a" + storage(say, "5", 2, "DoubleStorage") + b"a"
    yield "legacy_conflict.pt", stream(say, both, blobs), corrupt, "E_STORAGE_CONFLICT"
    module = b"(" + say.text("module") + say.text("no class") + b"NNtQ"
    yield "legacy_module.pt", stream(say, module, {}), corrupt, "E_TYPE"


def main():
    torch.manual_seed(0)
    data.write_corpus(valid, broken())


if __name__ == "__main__":
    main()
