# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch checkpoints without PyTorch.

    import lockstep
    weights = lockstep.load("model.pth")          # NumPy arrays, the file mapped
    with lockstep.open("model.pth") as file:      # one tensor
        print(list(file), file["fc.weight"].shape)
    lockstep.scan("model.pth").verdict            # "clean"
    lockstep.verify("model.pth").is_sound         # every byte compared
    lockstep.digest("model.pth")                  # equal weights, equal digest
    lockstep.convert("model.pth", "model.safetensors")

Reads PyTorch's zip, legacy and tar files, TorchScript, torch.export,
safetensors, sharded and distributed checkpoints, npy and npz. Nothing in a file
is executed or imported; torch is not needed. Errors are `LockstepError`.
"""
from . import _core
from ._errors import (
    CorruptError,
    ExistingFileError,
    FileError,
    InvalidArgumentError,
    LockstepError,
    LockstepWarning,
    MismatchError,
    MissingFileError,
    MissingKeyError,
    UnsafeError,
    UnsupportedError,
)
from ._files import File, TensorInfo, keys, load, loads, open
from ._tools import (
    ConvertReport,
    DigestRow,
    Problem,
    ScanFinding,
    ScanNote,
    ScanReport,
    VerifyReport,
    convert,
    digest,
    digest_rows,
    scan,
    scan_folder,
    verify,
)
from ._values import Device, DType, Object, Size, Tensor

_core.prepare()

__version__: str = _core.__version__

__all__ = [
    "ConvertReport", "CorruptError", "DType", "Device", "DigestRow",
    "ExistingFileError", "File",
    "FileError", "InvalidArgumentError", "LockstepError", "LockstepWarning",
    "MismatchError", "MissingFileError", "MissingKeyError", "Object", "Problem", "ScanFinding",
    "ScanNote", "ScanReport", "Size", "Tensor", "TensorInfo", "UnsafeError",
    "UnsupportedError", "VerifyReport", "__version__", "convert", "digest",
    "digest_rows", "keys", "load", "loads", "open", "scan", "scan_folder",
    "verify",
]
