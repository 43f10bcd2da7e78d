# SPDX-License-Identifier: BSD-3-Clause
"""Reads files as PyTorch 2.13's safe loader does.

ckpt_check.py FILE...: for each file, checks the zip with zipfile, then the
offsets PyTorch would compute (TORCH_SERIALIZATION_DEBUG), then loads it
plainly and mapped, and prints the two views of the content, which must agree.
"""
import os
import sys
import warnings
import zipfile

os.environ["TORCH_SERIALIZATION_DEBUG"] = "1"
import torch  # noqa: E402
import torch.utils.serialization  # noqa: E402

warnings.filterwarnings("ignore")


def text(value):
    if isinstance(value, torch.Tensor):
        bits = value.detach().resolve_conj().resolve_neg().contiguous().flatten()
        raw = bytes(bits.view(torch.uint8).tolist()) if bits.numel() else b""
        kind = type(value).__name__
        return f"{kind}({value.dtype}, {tuple(value.shape)}, {value.stride()}, {value.requires_grad}, {raw.hex()})"
    if isinstance(value, dict):
        inner = ", ".join(f"{text(k)}: {text(v)}" for k, v in value.items())
        extra = text(vars(value)) if getattr(value, "__dict__", None) else ""
        return f"{type(value).__name__}{{{inner}}}{extra}"
    if isinstance(value, (list, tuple)):
        return type(value).__name__ + "(" + ", ".join(text(v) for v in value) + ")"
    return repr(value)


for path in sys.argv[1:]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None, path
    plain = text(torch.load(path, weights_only=True))
    mapped = text(torch.load(path, weights_only=True, mmap=True))
    torch.utils.serialization.config.load.calculate_storage_offsets = True
    computed = text(torch.load(path, weights_only=True, mmap=True))
    torch.utils.serialization.config.load.calculate_storage_offsets = False
    assert plain == mapped == computed, path
    print(plain)
