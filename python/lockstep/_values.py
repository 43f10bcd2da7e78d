# SPDX-License-Identifier: BSD-3-Clause
"""What a checkpoint holds that Python and NumPy have no type for."""
from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from . import _core


class Size(tuple[int, ...]):
    """`torch.Size`: a tuple of ints, and equal to one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"lockstep.Size({list(self)})"


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """`torch.device("cuda", 1)`, as a value of the file."""

    type: str
    index: int | None = None

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


@dataclasses.dataclass(frozen=True, slots=True)
class DType:
    """`torch.float32`, as a value of the file. `str` of it is "float32"."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype. Errors: TypeError if NumPy has none."""
        if self.name not in _EXACT:
            raise TypeError(f"NumPy has no dtype {self.name}")
        return np.dtype(_EXACT[self.name])


class Object:
    """A value of a class that is not known here, as the file describes it.

    Nothing is imported or called: `Object` says what a loader that trusts the
    file would call. A whole `torch.nn.Module` is one, a sparse or nested tensor
    (the call that rebuilds it), an enum, a dataclass. Equal to itself only.
    """

    __slots__ = ("args", "global_name", "has_state", "items", "state")

    def __init__(self, global_name: str) -> None:
        self.global_name: str = global_name
        """The class or function: "model.Net"."""
        self.args: Any = None
        """Arguments of the call, a tuple; None without a call."""
        self.has_state: bool = False
        """The file gives the object a state, which may be None."""
        self.state: Any = None
        """Mostly the dict of its attributes."""
        self.items: list[Any] = []
        """Elements that were appended; (key, value) for those that were set."""

    def __repr__(self) -> str:
        parts = [repr(self.global_name)]
        if self.args:
            parts.append(f"{len(self.args)} args")
        if self.has_state:
            parts.append(f"state: {type(self.state).__name__}")
        if self.items:
            parts.append(f"{len(self.items)} items")
        return f"<lockstep.Object {', '.join(parts)}>"


class Tensor:
    """A tensor that says more than a NumPy array can.

    Its dtype is one that NumPy does not have (bfloat16 and float8 without the
    package ml_dtypes, complex32, quantized and packed types), or Python
    attributes or a subclass came with it, or it is (a part of) a key.
    `np.asarray(tensor)` gives the elements if NumPy has their dtype, and raises
    TypeError otherwise: bits never pass for numbers.
    """

    __slots__ = ("array", "attributes", "class_name", "dtype", "quantizer", "shape")

    def __init__(self, dtype: str, shape: tuple[int, ...], array: np.ndarray[Any, Any] | None = None,
                 quantizer: Any = None, attributes: dict[str, Any] | None = None, class_name: str = "") -> None:
        self.dtype: str = dtype
        """PyTorch's name: "bfloat16"."""
        self.shape: tuple[int, ...] = shape
        self.array: np.ndarray[Any, Any] | None = array
        """The bits, read-only; they alias the file as other arrays do. For
        bfloat16 uint16, for float8 uint8, for complex32 uint32, for qint8 int8.
        Types with several elements in a byte: uint8, the last dimension in
        bytes, a copy. None for a tensor without bytes (device "meta")."""
        self.quantizer: Any = quantizer
        """What quantized integers stand for, as in the file: a tuple of the
        scheme (an Object), scale and zero point, or arrays of them and an axis."""
        self.attributes: dict[str, Any] | None = attributes
        """Python attributes that were set on the tensor."""
        self.class_name: str = class_name
        """Python class of the tensor if it is a subclass: "module.Name"."""

    def __repr__(self) -> str:
        name = f", class {self.class_name}" if self.class_name else ""
        return f"<lockstep.Tensor {self.dtype} {list(self.shape)}{name}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.array is None:
            raise TypeError("the tensor has no bytes in the file (device meta)")
        if self.dtype not in _EXACT and self.array.dtype.name != self.dtype:
            raise TypeError(f"NumPy has no dtype {self.dtype}: see .array for the bits, .numbers() for floats")
        wanted = self.array if dtype is None else self.array.astype(dtype, copy=False)
        if copy is False and wanted is not self.array:
            raise ValueError(f"the elements are {self.array.dtype}: another dtype needs a copy")
        return wanted.copy() if copy and wanted is self.array else wanted

    def numbers(self) -> np.ndarray[Any, Any]:
        """The elements as float32 (complex32: complex64; quantized: the numbers
        that the integers stand for), a new array.

        Errors: TypeError for packed types and bits.
        """
        array = self.array
        if array is None:
            raise TypeError("the tensor has no bytes in the file (device meta)")
        if self.quantizer is not None:
            return _dequantized(self.dtype, array, self.quantizer)
        if self.dtype in _EXACT or array.dtype.name == self.dtype:
            return array.astype(np.complex64 if array.dtype.kind == "c" else np.float32)
        if self.dtype == "bfloat16":
            wide = np.ascontiguousarray(array).astype(np.uint32) << 16
            return wide.view(np.float32).reshape(array.shape)
        if self.dtype == "complex32":
            halves = np.ascontiguousarray(array).view(np.float16).astype(np.float32)
            return halves.view(np.complex64).reshape(array.shape)
        values = _core.byte_values(self.dtype) if self.dtype.startswith("float8") else None
        if values is None:
            raise TypeError(f"the bytes of {self.dtype} are no numbers")
        table: np.ndarray[Any, Any] = np.array(values, np.float32)
        return np.asarray(np.take(table, array))


def _dequantized(dtype: str, array: np.ndarray[Any, Any], quantizer: Any) -> np.ndarray[Any, Any]:
    if dtype not in ("qint8", "quint8", "qint32"):
        raise TypeError(f"several elements of {dtype} share a byte")
    scheme = getattr(quantizer[0], "global_name", "")
    scale, zero = np.asarray(quantizer[1], np.float32), np.asarray(quantizer[2])
    if scheme != "torch.per_tensor_affine":
        shape = [1] * array.ndim
        shape[quantizer[3]] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    numbers = (array.astype(np.int64) - zero).astype(np.float32) * scale
    return np.asarray(numbers, np.float32)


_NUMBERS_OR_TEXTS = re.compile(r"([biufc](1|2|4|8|16)|[US][0-9]{1,9})")


def _numpy_array(made: Object) -> Any:
    """The array that a pickle describes, if its elements are numbers or texts;
    else the description. The C++ part calls it. Calls nothing of the file."""
    try:
        if made.global_name.endswith("._reconstruct"):
            _, shape, dtype, is_fortran, data = made.state
            if made.args[0].global_name != "numpy.ndarray":
                return made
        else:
            buffer, dtype, shape, order = made.args
            data, is_fortran = (buffer.args[0] if isinstance(buffer, Object) else buffer), order == "F"
        if type(dtype.state) is not tuple or type(data) is not bytes:
            return made
        kind, byteorder, parts = dtype.args[0], dtype.state[1], dtype.state[2:5]
        if not _NUMBERS_OR_TEXTS.fullmatch(kind) or byteorder not in ("<", ">", "=", "|") or any(parts):
            return made  # "O," before a letter would be a structure with pointers
        array = np.ndarray(shape, np.dtype(byteorder + kind), data, order="F" if is_fortran else "C")
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError):
        return made
    return array if array.nbytes == len(data) else made


# PyTorch's names of what NumPy has.
_EXACT = {name: name for name in (
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64",
    "bool", "complex128", "complex64")}

# The bits of what it has not.
_BITS = {
    "bfloat16": "uint16", "qint8": "int8", "quint8": "uint8", "qint32": "int32", "complex32": "uint32",
    "bits16": "uint16",
}


def _has_ml_dtypes() -> bool:
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        return False
    return True


def _dtype_rows(names: list[str], use_ml: bool) -> list[tuple[np.dtype[Any], bool]]:
    """(dtype, is_exact) for each name; the C++ part calls it."""
    module: Any = None
    if use_ml:
        import ml_dtypes
        module = ml_dtypes
    rows = []
    for name in names:
        dtype = _EXACT.get(name)
        if dtype is None and (name == "bfloat16" or name.startswith("float8")):
            dtype = getattr(module, name, None)
        is_exact = dtype is not None
        rows.append((np.dtype(dtype if is_exact else _BITS.get(name, "uint8")), is_exact))
    return rows
