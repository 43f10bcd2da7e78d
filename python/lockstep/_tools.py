# SPDX-License-Identifier: BSD-3-Clause
"""Is a file safe, is it sound, what is its content, in another format."""
from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

from . import _core
from ._errors import InvalidArgumentError, LockstepError, _in_python, _make
from ._files import ByteOrder, Limits, Path, Source, _content, _path_bytes, _reading


@dataclasses.dataclass(frozen=True, slots=True)
class ScanFinding:
    """A name in a pickle that PyTorch's safe loader would not take."""

    name: str
    """"os.system"; '?' stands for what is not spelled out."""
    is_dangerous: bool
    """Known to run code or to reach the system; else a class that Python needs."""
    is_nested: bool
    """In a pickle inside a string of a pickle."""
    record: str
    offset: int
    """Bytes from the start of the record, or of the file."""
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class ScanNote:
    """What is odd, or why a part could not be scanned."""

    code: str
    message: str
    record: str
    offset: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class ScanReport:
    """What a scan says of one file."""

    path: str
    format: str
    """"" if no format claims the bytes."""
    verdict: str
    """"clean": every pickle was read to its end and names only allowed things;
    "found"; "unreadable": a part could not be scanned; "other": a file in a
    folder that no format claims."""
    pickles: int
    names: int
    script_classes: int | None
    """Of a TorchScript program; its code is not judged."""
    operators: int | None
    """Of programs of torch.export."""
    findings: list[ScanFinding]
    notes: list[ScanNote]


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that `verify` found."""

    code: str
    """"E_CRC" for damage, "W_..." for an oddity."""
    name: str
    """Class of the error: "kCorrupt"; kUnsupported and kUnsafe are no damage."""
    message: str
    record: str
    hint: str
    tensors: list[str]
    """Those whose bytes are affected."""


@dataclasses.dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `verify` found."""

    records: int
    checked_bytes: int
    tensors: int
    errors: list[Problem]
    warnings: list[Problem]
    """Oddities: the bytes are fine."""

    @property
    def is_sound(self) -> bool:
        """No errors: the file can be used."""
        return not self.errors


@dataclasses.dataclass(frozen=True, slots=True)
class DigestRow:
    """One tensor of a digest."""

    name: str
    type: str
    """Storage class without "Storage": "Float"."""
    shape: str
    sha256: str
    """Of the row-major little-endian bytes, 64 hex digits."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConvertReport:
    """What `convert` wrote, and what it did not."""

    output: str
    format: str
    tensors: int
    bytes: int
    left_out: list[str]
    """Names in the input that are not in the output."""
    changed: list[dict[str, Any]]
    """Tensors of another type or device: name, from, to."""
    warnings: list[str]


def _scan_report(row: dict[str, Any]) -> ScanReport:
    findings = [ScanFinding(**f) for f in row.pop("findings")]
    notes = [ScanNote(**n) for n in row.pop("notes")]
    return ScanReport(**row, findings=findings, notes=notes)


def scan(source: Source, *, limits: Limits | None = None) -> ScanReport:
    """Does a file name code that a loader would run? Scans every pickle in it,
    however damaged; never raises because of what is in the file.

    Errors: MissingFileError, FileError; InvalidArgumentError for a folder
    (`scan_folder`); UnsupportedError for a pipe or a device.
    """
    if hasattr(source, "read"):
        report = _core.scan_bytes(*_content(source), _reading(limits=limits))
        if report["verdict"] == "other":  # as for a file that is named
            report["verdict"] = "unreadable"
        return _scan_report(report)
    path = _path_bytes(source)
    if os.path.isdir(path):
        raise InvalidArgumentError(f"'{os.fsdecode(path)}' is a folder; lockstep.scan_folder takes it")
    return _scan_report(_core.scan_path(path, _reading(limits=limits))[0])


def scan_folder(path: Path, *, limits: Limits | None = None) -> list[ScanReport]:
    """`scan` of every file below a folder. Errors: as `scan`."""
    return [_scan_report(row) for row in _core.scan_path(_path_bytes(path), _reading(limits=limits))]


def verify(source: Source, *, byteorder: ByteOrder | None = None, limits: Limits | None = None) -> VerifyReport:
    """Checks every byte of a checkpoint: checksums, bounds, layout. Goes on
    after damage, so that all tensors that are lost are named.

    Errors: LockstepError for what keeps the file from being opened at all.
    """
    # Read, not mapped: a file that shrinks meanwhile is an error, not a signal.
    how = _reading(byteorder=byteorder, limits=limits)
    if hasattr(source, "read"):
        row = _core.verify_bytes(*_content(source), how)
    else:
        row = _core.verify_path(_path_bytes(source), how)
    errors = [_problem(p) for p in row.pop("errors")]
    warnings = [_problem(p) for p in row.pop("warnings")]
    return VerifyReport(**row, errors=errors, warnings=warnings)


def _problem(row: dict[str, Any]) -> Problem:
    return Problem(**row | {"hint": _in_python(row["hint"])})


def _digest(source: Source, byteorder: ByteOrder | None,
            limits: Limits | None) -> tuple[str, list[tuple[str, str, str, str]]]:
    how = _reading(byteorder=byteorder, limits=limits)
    if hasattr(source, "read"):
        return _core.digest_bytes(*_content(source), how)
    return _core.digest_path(_path_bytes(source), how)


def digest(source: Source, *, byteorder: ByteOrder | None = None, limits: Limits | None = None) -> str:
    """SHA-256 of the tensors, 64 hex digits: equal weights have equal digests,
    whatever the format, the byte order, the strides and the sharing. Equal to
    what `lockstep ckpt digest` prints. Reads all bytes; Ctrl-C waits for that.
    Arguments and errors: as `load`."""
    return _digest(source, byteorder, limits)[0]


def digest_rows(source: Source, *, byteorder: ByteOrder | None = None,
                limits: Limits | None = None) -> list[DigestRow]:
    """The tensors of `digest`, sorted by name. Arguments and errors: as `load`."""
    return [DigestRow(*row) for row in _digest(source, byteorder, limits)[1]]


def program() -> str:
    """Path of the program `lockstep` that came with this package.

    Errors: LockstepError if it is not there.
    """
    try:
        files = importlib.metadata.files("lockstep-ckpt") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    # Of pip install --target first: what its files are called there is wrong then.
    places = [pathlib.Path(__file__).parent.parent / "bin" / "lockstep"]
    places += [pathlib.Path(str(file.locate())) for file in files if file.parent.name == "bin"]
    for place in places:
        if place.name == "lockstep" and place.is_file():
            return str(place.resolve())
    on_path = shutil.which("lockstep")
    if on_path is None or _version_of(on_path) != _core.__version__:
        found = "" if on_path is None else f": {on_path} is of another version than {_core.__version__}"
        hint = "install the wheel of lockstep-ckpt again"
        message = f"the program lockstep is not installed{found}"
        raise LockstepError(f"{message}. Hint: {hint}.", message=message, hint=hint)
    return on_path


def _version_of(path: str) -> str:
    """What the program says of itself: "Lockstep 0.1.0" and more lines."""
    words = _run([path, "--version"]).stdout.decode(errors="replace").split()
    return words[1] if len(words) > 1 and words[0] == "Lockstep" else ""


def _run(command: list[Any]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise LockstepError(f"the program {command[0]} cannot be started: {error.strerror}") from error


def _told(name: str, *paths: Path) -> str:
    """The path that the program means, which says it in UTF-8."""
    same = [os.fsdecode(path) for path in paths if os.fsencode(path).decode(errors="replace") == name]
    return same[0] if same else name


def convert(source: Path, output: Path, *, to: str | None = None, dtype: str | None = None,
            map_location: str | None = None, clone_views: bool = False, shard: str | None = None,
            keep_all: bool = False, overwrite: bool = False, byteorder: ByteOrder | None = None,
            limits: Limits | None = None) -> ConvertReport:
    """Writes a checkpoint in another format; does what `lockstep ckpt convert`
    does, by that program.

    to: "pt", "safetensors", "npz", "pt-legacy", "libtorch", "dcp". Default: by
      the name of `output`.
    dtype: new type of floating-point tensors: "bfloat16".
    map_location: device tag of all tensors: "cpu".
    clone_views: write only the parts of storages that tensors use.
    shard: split safetensors into files of at most this size: "5GB".
    keep_all: keep everything, not only the weights, in formats for tensors.
    overwrite: replace an existing file. It is replaced at once or not at all.
    byteorder, limits: as of `load`.

    What the output has no place for is in the report: `left_out`.
    Errors: LockstepError.
    """
    command: list[Any] = [program(), "ckpt", "convert", "--json"]
    bounds = _reading(byteorder=byteorder, limits=limits)["limits"]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in bounds.items()]
    for flag, value in (("--to", to), ("--dtype", dtype), ("--map-location", map_location), ("--shard", shard),
                        ("--byteorder", byteorder)):
        if value is not None:
            if not str(value):
                raise ValueError(f"{flag[2:].replace('-', '_')}: expected a text that is not empty")
            command += [f"{flag}={value}"]
    for flag, is_on in (("--clone-views", clone_views), ("--all", keep_all), ("--force", overwrite)):
        if is_on:
            command.append(flag)
    command += ["--", _file_argument(source), _file_argument(output)]
    done = _run(command)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise LockstepError(said or f"lockstep ckpt convert ended with {done.returncode}") from None
    if not answer["ok"]:
        fields = answer["error"]
        text = _core.error_text(fields)
        raise _make(text, fields | {"path": _told(fields["path"], source, output)})
    result = answer["result"]
    return ConvertReport(
        output=_told(result["output"], output), format=result["format"], tensors=result["tensors"], bytes=result["bytes"],
        left_out=result["left_out"], changed=result["changed_tensors"], warnings=result["warnings"])


def _file_argument(path: Path) -> bytes:
    name = _path_bytes(path)
    return b"./-" if name == b"-" else name  # "-" would be standard input
