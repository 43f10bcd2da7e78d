# SPDX-License-Identifier: BSD-3-Clause
"""Damaged files through the Python module: each is read, or is an error.

fuzz.py [--seconds 5] [--seed 0]. Mutates the files of testdata and of
pt_files.py: bytes, ranges, cuts, insertions, pieces of other files. Every array
is read to its end, every object walked. A crash leaves the input in
fuzz_input.bin of the working folder; an exception of another class fails.
"""
import argparse
import collections
import io
import pathlib
import pickle
import random
import time
import warnings
import zipfile

import numpy as np

import lockstep
from pt_files import TESTDATA, Storage, Tensor, pt_bytes, tensor

MAX_BYTES = 200_000
MAX_VALUES = 20_000


def seeds():
    for folder in ("valid", "corrupt", "hostile"):
        for path in sorted((TESTDATA / folder).iterdir()):
            if path.is_file() and path.suffix != ".json" and path.stat().st_size < MAX_BYTES:
                yield path.read_bytes()
    base = Storage(np.arange(12, dtype=np.float32))
    tree = {"a": Tensor(base, (3, 4), (4, 1)), "b": Tensor(base, (4, 3), (1, 4)), 3: [tensor(np.ones(2, np.int8))]}
    for options in ({}, {"deflate": True}, {"byteorder": "big"}):
        yield pt_bytes(tree, **options)


def mutate(data, others, chance):
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(7):
            case 0 if data:
                data[at - 1] = chance.randrange(256)
            case 1 if data:
                data[at - 1] ^= 1 << chance.randrange(8)
            case 2:
                del data[at:at + chance.choice((1, 4, 64, 4096))]
            case 3:
                data[at:at] = chance.randbytes(chance.choice((1, 2, 8)))
            case 4:
                width = chance.choice((1, 2, 4, 8))
                number = chance.choice((0, 1, 0x7F, 0x80, (1 << 8 * width) - 1, (1 << 8 * width - 1) - 1))
                data[at:at + width] = (number % (1 << 8 * width)).to_bytes(width, "little")
            case 5:
                other = chance.choice(others)
                begin = chance.randrange(len(other) + 1)
                data[at:at + 16] = other[begin:begin + chance.choice((4, 16, 256))]
            case 6 if chance.randrange(8) == 0:
                del data[at:]
    return bytes(data)


def with_other_pickle(data, others, chance):
    """The archive with a damaged pickle and right checksums: deeper than damage
    of the container gets. Other files as they are."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            records = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # noqa: BLE001: no archive
        return None
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in records.items():
            is_hit = name.endswith("data.pkl")
            archive.writestr(zipfile.ZipInfo(name), mutate(content, others, chance) if is_hit else content)
    return out.getvalue()


def walk(root):
    """Touches what there is; each object once."""
    seen, todo = set(), [root]
    while todo and len(seen) < MAX_VALUES:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable
            if value.size < 1 << 20:
                value.tobytes()
        elif isinstance(value, dict):
            todo += [*value.keys(), *value.values(), *getattr(value, "__dict__", {}).values()]
        elif isinstance(value, (list, tuple, set)):
            todo += value
        elif isinstance(value, lockstep.Object):
            todo += [value.args, value.state, value.items]
        elif isinstance(value, lockstep.Tensor):
            todo += [value.array, value.quantizer, value.attributes]
            try:
                if value.array is not None and value.array.size < 1 << 16:
                    value.numbers()
            except (TypeError, ValueError, IndexError, AttributeError, KeyError):
                pass  # a quantizer that is none
        repr(value) if isinstance(value, (lockstep.Object, lockstep.Tensor)) else None


def exercise(data, path):
    outcome = "read"
    try:
        if path is None:
            walk(lockstep.loads(data))
        else:
            path.write_bytes(data)
            walk(lockstep.load(path, check_crc=len(data) % 2 == 0, mmap=len(data) % 3 != 0))
            with lockstep.open(path) as file:
                for name in file.keys():
                    file.info(name)
                    name in file
                    walk(file[name])
    except lockstep.LockstepError as error:
        assert error.name and str(error)
        outcome = error.code
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    chance, others = random.Random(args.seed), list(seeds())
    warnings.simplefilter("ignore")  # of zipfile: one name twice
    pickles = [pickle.dumps([1.5, {"a": (None, b"b")}, {2}], protocol) for protocol in range(6)] + others[:8]
    sound = [data for data in others if exercise(data, None) == "read"]
    path = pathlib.Path("fuzz_input.bin")
    outcomes, end = collections.Counter(), time.monotonic() + args.seconds
    while time.monotonic() < end:
        deeper = with_other_pickle(chance.choice(sound), pickles, chance) if chance.randrange(2) else None
        data = deeper or mutate(chance.choice(others), others, chance)
        path.write_bytes(data)
        outcomes[exercise(data, path if chance.randrange(2) else None)] += 1
        if chance.randrange(4) == 0:
            assert lockstep.scan(path).verdict in ("clean", "found", "unreadable", "other")
            try:
                lockstep.verify(path)
                lockstep.digest(path)
            except lockstep.LockstepError:
                pass
    path.unlink()
    total = sum(outcomes.values())
    print(f"{total} inputs, {outcomes['read']} read, {len(outcomes) - 1} codes: "
          + ", ".join(f"{code} {count}" for code, count in outcomes.most_common(8)))


if __name__ == "__main__":
    main()
