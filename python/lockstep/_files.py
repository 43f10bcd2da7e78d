# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints as Python objects: whole, or value by value."""
from __future__ import annotations

import dataclasses
import operator
import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol

from . import _core
from ._errors import LockstepWarning
from ._values import _has_ml_dtypes


class _Readable(Protocol):
    def read(self) -> bytes: ...


Path = str | os.PathLike[str]
Source = Path | _Readable
ByteOrder = Literal["little", "big"]
Limits = Mapping[str, int]


def _path_bytes(path: Any) -> bytes:
    """The path as the system takes it."""
    if isinstance(path, (bytes, bytearray, memoryview)):
        raise TypeError("expected a path or a binary file, got bytes; lockstep.loads(data) reads their content")
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"expected a path or a binary file, got {type(path).__name__}")
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("embedded null byte")
    return name


def _content(file: Any) -> tuple[bytes, str]:
    """What is left in an open file, and its name for messages."""
    data = file.read()
    if not isinstance(data, bytes):
        raise TypeError(f"expected a file opened in binary mode, got {type(data).__name__} of its read()")
    return data, _name(file)


def _name(source: Source) -> str:
    """What messages call it."""
    name = getattr(source, "name", None) if hasattr(source, "read") else os.fsdecode(source)
    return _plain(name) if isinstance(name, str) else "<file>"


def _plain(name: str) -> str:
    """A name that UTF-8 can spell."""
    return name.encode("utf-8", "backslashreplace").decode()


def _wants_ml_dtypes(ml_dtypes: bool | None) -> bool:
    if ml_dtypes and not _has_ml_dtypes():
        raise ImportError("ml_dtypes=True needs the package ml_dtypes: pip install ml_dtypes")
    return _has_ml_dtypes() if ml_dtypes is None else bool(ml_dtypes)


def _reading(*, mmap: bool = False, check_crc: bool = False, byteorder: ByteOrder | None = None,
             limits: Limits | None = None) -> dict[str, Any]:
    """How to read a file, as the C++ part takes it."""
    if byteorder is not None and (not isinstance(byteorder, str) or byteorder not in ("little", "big")):
        raise ValueError(f"byteorder: expected 'little' or 'big', got {byteorder!r}")
    if limits is not None and not isinstance(limits, Mapping):
        raise TypeError(f"limits: expected a dict of names and numbers, got {type(limits).__name__}")
    bounds, names = {}, _core.limit_names()
    for name, value in dict(limits or {}).items():
        if name not in names:
            raise ValueError(f"limits: {name!r} is none; expected some of {', '.join(names)}")
        bounds[name] = operator.index(value)
        if not 0 <= bounds[name] < 2**64:
            raise ValueError(f"limits: expected a number from 0 to 2**64 - 1 for {name!r}, got {value!r}")
    return {"mmap": bool(mmap), "check_crc": bool(check_crc), "byteorder": byteorder, "limits": bounds}


def _open_core(source: Source, ml_dtypes: bool | None, how: dict[str, Any]) -> _core.Checkpoint:
    use_ml = _wants_ml_dtypes(ml_dtypes)
    if hasattr(source, "read"):
        return _core.open_bytes(*_content(source), use_ml, how)
    return _core.open_path(_path_bytes(source), use_ml, how)


def _whole(core: _core.Checkpoint, path: str, check_crc: bool) -> Any:
    """The tree, for those who see nothing of the file beside it."""
    for code, text in core.facts()["warnings"]:
        if check_crc or code != "W_CRC_ABSENT":  # nothing of the tensors is compared
            warnings.warn(f"{path}: {text} ({code})", LockstepWarning, stacklevel=3)
    return core.root()


def load(source: Source, *, mmap: bool = True, check_crc: bool = False, ml_dtypes: bool | None = None,
         byteorder: ByteOrder | None = None, limits: Limits | None = None) -> Any:
    """Reads a checkpoint: dicts, lists, tuples, numbers, texts, NumPy arrays.

    The arrays are read-only and alias the mapped file: nothing is copied, and
    the mapping lives as long as any of them. Tensors that share memory in the
    file share it here; views are strided arrays. `array.copy()` gives one to
    write to. Order and types of keys stay; a state_dict is an OrderedDict, its
    `_metadata` an attribute. What has no type here is an `Object`, what is more
    than an array a `Tensor`; device, `requires_grad` and `Parameter` are left
    out (`lockstep.open(path).info(name)` tells them).

    source: a path, or a file opened in binary mode, which is read to its end.
      Folders: distributed checkpoints, unpacked archives.
    mmap: off, the bytes are read into memory: for files that somebody may
      shorten meanwhile, which ends a process that maps them (SIGBUS).
    check_crc: compare the checksums of tensors, too, which reads all bytes.
      Those of everything else are compared in any case.
    ml_dtypes: give bfloat16 and float8 the dtypes of that package. Default: if
      it is installed. Off: they are `Tensor`s.
    byteorder: that of zip files which do not say it, as those of torch before
      2.1 from a big-endian machine. Default: "little".
    limits: bounds on what a small file may become, {"max_expanded_bytes":
      2**40}; `lockstep ckpt limits` lists them. Default: those of the list.

    Copied, not aliased: deflated records, files of the other byte order,
    conjugated and negated views, packed types.

    What is odd but harmless is a LockstepWarning (`File.warnings`).
    Errors: LockstepError, mostly CorruptError, UnsupportedError, UnsafeError,
    MissingFileError.
    """
    how = _reading(mmap=mmap, check_crc=check_crc, byteorder=byteorder, limits=limits)
    return _whole(_open_core(source, ml_dtypes, how), _name(source), check_crc)


def loads(data: Any, *, check_crc: bool = False, ml_dtypes: bool | None = None,
          byteorder: ByteOrder | None = None, limits: Limits | None = None, name: str = "<bytes>") -> Any:
    """`load` for the content of a file. Arrays alias `data` if it is `bytes`;
    any other buffer is copied first. `name` stands for the path in messages."""
    if not isinstance(name, str):
        raise TypeError(f"name: expected a text, got {type(name).__name__}")
    content = data if type(data) is bytes else bytes(memoryview(data))
    how = _reading(check_crc=check_crc, byteorder=byteorder, limits=limits)
    return _whole(_core.open_bytes(content, _plain(name), _wants_ml_dtypes(ml_dtypes), how), _plain(name), check_crc)


@dataclasses.dataclass(frozen=True, slots=True)
class TensorInfo:
    """What is known of a tensor without its bytes."""

    name: str
    """Dotted: "state_dict.fc.weight"."""
    dtype: str
    """PyTorch's name: "bfloat16"."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements, as PyTorch counts."""
    nbytes: int
    """Bytes of the elements."""
    device: str
    """As in the file: "cuda:0"."""
    storage: str
    """Key of the storage in the file: equal ones share memory."""
    requires_grad: bool
    is_parameter: bool
    class_name: str
    """Python class of a tensor of a subclass, else ""."""


class File(Mapping[str, Any]):
    """An open checkpoint. `file["fc.weight"]` reads one tensor or other value.

    `keys()` and iteration give the names of all tensors, in file order. `[]`
    takes these, and the dotted name of any value: "epoch",
    "optimizer.param_groups.0.lr". A name that two values have ('a.b', and 'b' in
    'a') is refused: `root()` has both. Arrays live on after `close()`.
    Threads: any, at the same time.
    """

    format: str
    """"zip", "legacy", "safetensors", ..."""
    era: str
    """Which writers make such files: "torch 2.6 or newer"."""
    byteorder: str
    crc: str
    """"present", "absent in data" or "absent"."""
    file_bytes: int
    globals: list[str]
    """Names that its pickle mentions."""
    warnings: list[tuple[str, str]]
    """What is odd but harmless: (code, text)."""

    _core: _core.Checkpoint | None = None

    def __init__(self, source: Source, *, mmap: bool = True, check_crc: bool = False,
                 ml_dtypes: bool | None = None, byteorder: ByteOrder | None = None,
                 limits: Limits | None = None) -> None:
        how = _reading(mmap=mmap, check_crc=check_crc, byteorder=byteorder, limits=limits)
        self._core = _open_core(source, ml_dtypes, how)
        for name, value in self._core.facts().items():
            setattr(self, name, value)

    def _open_file(self) -> _core.Checkpoint:
        if self._core is None:
            raise ValueError("the file is closed")
        return self._core

    def __getitem__(self, name: str) -> Any:
        return self._open_file().value(self._key(name))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._open_file().has_value(self._key(name))

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[str]:
        return iter(self._open_file().names())

    def __len__(self) -> int:
        return len(self._open_file().names())

    def root(self) -> Any:
        """The whole tree, as `load` gives it."""
        return self._open_file().root()

    def info(self, name: str) -> TensorInfo:
        """What is known of a tensor; reads none of its bytes."""
        return TensorInfo(**self._open_file().info(self._key(name)))

    def _key(self, name: str) -> bytes:
        """The name as in the file: UTF-8, or bytes that are none (see text.h)."""
        if not isinstance(name, str):
            raise TypeError(f"expected a name, got {type(name).__name__}")
        usual = name.encode("utf-8", "surrogatepass")
        try:
            other = name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return usual
        is_other = other != usual and not self._open_file().has_value(usual)
        return other if is_other else usual

    @property
    def closed(self) -> bool:
        return self._core is None

    def close(self) -> None:
        """Lets the file go. Arrays that were read keep what they need."""
        self._core = None

    def __enter__(self) -> File:
        self._open_file()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self)} tensors"
        return f"<lockstep.File {getattr(self, 'format', 'unread')}, {state}>"


def open(source: Source, *, mmap: bool = True, check_crc: bool = False, ml_dtypes: bool | None = None,
         byteorder: ByteOrder | None = None, limits: Limits | None = None) -> File:
    """Opens a checkpoint to read single values: see `File`, and `load` for the
    arguments and the errors. Without `mmap` the bytes of a value are read when
    it is asked for: the file must not change in place meanwhile."""
    return File(source, mmap=mmap, check_crc=check_crc, ml_dtypes=ml_dtypes, byteorder=byteorder, limits=limits)


def keys(source: Source, *, limits: Limits | None = None) -> list[str]:
    """Dotted names of all tensors, in file order. Reads no tensor bytes."""
    return _open_core(source, False, _reading(mmap=True, limits=limits)).names()
