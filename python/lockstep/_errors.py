# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong, as exceptions: one class for each class of errors."""
from __future__ import annotations

import errno
import os
import re
from typing import Any


class LockstepError(Exception):
    """An error of Lockstep. `str` of it says what, where and what to do.

    `lockstep explain CODE` prints more about a code.
    """

    code: str
    """Finest name of the error: "E_CRC"; that of its class if there is none."""
    name: str
    """Class of the error: "kCorrupt"; docs/errors.md has all."""
    op: str
    """Operation: "ckpt.read"."""
    message: str
    """What happened, without the place and the hint."""
    hint: str
    """What to do next; "" if that is not known."""
    path: str
    """The file; "" if there is none."""
    record: str
    """Record inside the file: "archive/data/0"; "" if there is none."""
    offset: int | None
    """Bytes from the start of the record, or of the file; None if unknown."""

    def __init__(self, text: str = "", **fields: Any) -> None:
        super().__init__(text)
        self._text = text
        self.code = fields.get("code", "")
        self.name = fields.get("name", "")
        self.op = fields.get("op", "")
        self.message = fields.get("message", text)
        self.hint = fields.get("hint", "")
        self.path = fields.get("path", "")
        self.record = fields.get("record", "")
        self.offset = fields.get("offset")

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> Any:  # for multiprocessing
        names = ("code", "name", "op", "message", "hint", "path", "record", "offset")
        return _rebuild, (type(self), self._text, {n: getattr(self, n) for n in names})


class LockstepWarning(UserWarning):
    """What is odd about a file but harmless."""


class CorruptError(LockstepError):
    """Bytes break the rules of the format (kCorrupt)."""


class UnsupportedError(LockstepError):
    """A sound file with something that is not read (kUnsupported)."""


class UnsafeError(LockstepError):
    """Refused: it would run code or exceeds a limit (kUnsafe)."""


class MismatchError(LockstepError):
    """Two sides differ (kMismatch)."""


class InvalidArgumentError(LockstepError, ValueError):
    """An argument that cannot be (kInvalidArgument)."""


class MissingKeyError(LockstepError, KeyError):
    """A name that no value of the file has (kNotFound)."""


class FileError(LockstepError, OSError):
    """The system could not read or write (kIo)."""

    _number: int | None = None

    def __init__(self, text: str = "", **fields: Any) -> None:
        super().__init__(text, **fields)
        self.filename = self.path or None
        # As OSError has them: None where the class does not tell.
        self.errno = self._number
        self.strerror = None if self._number is None else os.strerror(self._number)


class ExistingFileError(FileError, FileExistsError):
    """A path where something is that is not to be replaced (E_EXISTS)."""

    _number = errno.EEXIST


class MissingFileError(FileError, FileNotFoundError):
    """A path where nothing is (kNotFound)."""

    _number = errno.ENOENT


_CLASSES: dict[str, type[LockstepError]] = {
    "kCorrupt": CorruptError,
    "kUnsupported": UnsupportedError,
    "kUnsafe": UnsafeError,
    "kMismatch": MismatchError,
    "kInvalidArgument": InvalidArgumentError,
    "kIo": FileError,
}


def _rebuild(cls: type[LockstepError], text: str, fields: dict[str, Any]) -> LockstepError:
    return cls(text, **fields)


# Hints name options of the library, or flags of the program.
_WORDS = (
    (r"Limits::allow_no_root|--lenient", "--lenient of the program"),
    (r"expanding\(\)|--allow-expand", "limits={'max_ratio': N, 'max_expanded_bytes': N}"),
    (r"Limits::(\w+)", r"limits={'\1': N}"),
    (r"--(max-[a-z-]+)", lambda found: f"limits={{'{found[1].replace('-', '_')}': N}}"),
    (r"add --force|--force", "overwrite=True"),
    (r"'lockstep ckpt convert --clone-views'|--clone-views", "lockstep.convert(..., clone_views=True)"),
    (r"'lockstep ckpt convert --to FORMAT'", "lockstep.convert(..., to=FORMAT)"),
    (r"'lockstep ckpt convert --help'", "help(lockstep.convert)"),
    (r"'lockstep ckpt ls FILE'", "lockstep.keys(path)"),
)


def _in_python(hint: str) -> str:
    """The hint in words of this module. What stands in quotes is the user's, or a command."""
    parts = re.split(r"('[^']*')", hint)
    for word, by in _WORDS:
        for i, part in enumerate(parts):
            is_quoted = part.startswith("'") and not part.startswith("'lockstep ckpt ")
            parts[i] = part if is_quoted else re.sub(word, by, part)
    return "".join(parts)


def _make(text: str, fields: dict[str, Any]) -> LockstepError:
    """The exception of an error; the C++ part calls it."""
    name, hint = fields["name"], _in_python(fields["hint"])
    text = text.replace(fields["hint"], hint) if hint != fields["hint"] else text
    fields["hint"] = hint
    if name == "kNotFound":
        is_key = fields["op"] in ("ckpt.show", "ckpt.value", "ckpt.edit")
        cls: type[LockstepError] = MissingKeyError if is_key else MissingFileError
    elif fields["code"] == "E_EXISTS":
        cls = ExistingFileError
    else:
        cls = _CLASSES.get(name, LockstepError)
    return cls(text, **fields)
