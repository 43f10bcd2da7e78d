# SPDX-License-Identifier: BSD-3-Clause
"""Damages programs at random places of their JSON, and watches what C++ makes of
them:

program_fuzz.py PROGRAM_OUTCOMES FOLDER SEED COUNT   COUNT files
program_fuzz.py PROGRAM_OUTCOMES FOLDER SEED 10m     as many as ten minutes allow

Each edit copies, moves, drops or changes a part of the graph, the signature or the
table of weights; names and targets come from the same files, so that many edits
make other programs, not only broken ones. Prints how many files were refused when
loaded, how many when run, and how many ran. What crashes, hangs while it is loaded
or throws what nobody promised is kept in FOLDER and printed; the status is 1 then.
"""
import collections
import copy
import io
import json
import pathlib
import random
import resource
import subprocess
import sys
import time
import warnings
import zipfile

import torch

import program_nets

warnings.filterwarnings("ignore")
SEEDS = ["mlp", "cnn", "lstm", "text", "branches", "frozen"]
JSON = ["models/model.json", "data/weights/model_weights_config.json",
        "data/constants/model_constants_config.json"]
NUMBERS = [-1, 0, 1, 2, 3, 7, 16, 64, 255, 1 << 15, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63),
           1 << 64, 0.5, -0.0, 1e308, "Infinity", "NaN"]
BATCH = 40
MEMORY = 12 << 30
SECONDS = 120


def records_of(name):
    torch.manual_seed(0)
    make, batch, dynamic = program_nets.NETS[name]
    args, kwargs, _ = batch(4)
    program = torch.export.export(make().train(), args, kwargs, dynamic_shapes=dynamic)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as archive:
        records = {info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()}
    records = {key: json.loads(value) if key in JSON else value for key, value in records.items()}
    for node in records[JSON[0]]["graph_module"]["graph"]["nodes"]:
        node["metadata"].pop("stack_trace", None)  # nothing to damage, and most of the bytes
    return records


def places(value, found):
    """Every (container, key) below."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        places(item, found)
    return found


def other_scalar(value, pool, rng):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return rng.choice([*NUMBERS, value + 1, value - 1, -value])
    if isinstance(value, str):
        return rng.choice(pool) if rng.random() < 0.9 else rng.choice(["", "x" * 5000, "\0", "a..b", *map(str, NUMBERS)])
    return rng.choice([0, "", [], {}, None])


def edit(records, rng):
    part = records[rng.choices(JSON, [8, 1, 1])[0]]
    found = places(part, [])
    if not found:
        return
    holder, key = rng.choice(found)
    value = holder[key]
    kind = rng.randrange(5)
    if kind == 0 and not isinstance(value, (dict, list)):
        holder[key] = other_scalar(value, [h[k] for h, k in found if isinstance(h[k], str)] or [""], rng)
    elif kind == 1:
        other, place = rng.choice(found)
        holder[key] = copy.deepcopy(other[place])
    elif kind == 2:
        del holder[key]
    elif kind == 3 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(value))
    else:
        alike = [(h, k) for h, k in found if type(h[k]) is type(value)]
        other, place = rng.choice(alike)
        other[place], holder[key] = copy.deepcopy(value), copy.deepcopy(other[place])


def damaged(records, rng):
    records = {key: copy.deepcopy(value) if key in JSON else value for key, value in records.items()}
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        edit(records, rng)
    return records


def write(path, records):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in records.items():
            archive.writestr("net/" + name, content if isinstance(content, bytes) else json.dumps(content))


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outcomes_of(program, paths):
    """path -> lines; the process starts anew behind a file that ended it."""
    told = collections.defaultdict(list)
    left = list(paths)
    while left:
        process = subprocess.Popen([program, *left], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   preexec_fn=limit_memory)
        try:
            out, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
        for line in out.decode(errors="replace").splitlines():
            path, _, outcome = line.partition(" ")
            told[path].append(outcome)
        done = [path for path in left if told[path][-1:] and not told[path][-1].startswith("loaded")]
        left = left[len(done):]
        if left:
            timed_out = process.returncode == -9
            told[left[0]].append("hangs" if timed_out else f"crashes {process.returncode}")
            left = left[1:]
    return told


def summary(lines):
    """loading or running, and how it ended."""
    last = lines[-1].split(" ")[0]
    return ("run" if lines[0].startswith("loaded") else "load") + " " + last


def main():
    program, folder, seed, amount = sys.argv[1:]
    folder = pathlib.Path(folder)
    rng = random.Random(int(seed))
    seeds = [records_of(name) for name in SEEDS]
    end = time.monotonic() + 60 * float(amount[:-1]) if amount.endswith("m") else None
    left = None if end else int(amount)
    counts = collections.Counter()
    bad = []
    while (time.monotonic() < end) if end else left > 0:
        count = BATCH if end else min(BATCH, left)
        left = None if end else left - count
        paths = [str(folder / f"{sum(counts.values()) + i}.pt2") for i in range(count)]
        for path in paths:
            write(path, damaged(rng.choice(seeds), rng))
        told = outcomes_of(program, paths)
        for path in paths:
            kind = summary(told[path])
            counts[kind] += 1
            # A program that runs for long was asked to.
            if kind.split()[1] in ("crashes", "unexpected") or kind == "load hangs":
                bad.append(path)
                print(path, told[path])
            else:
                pathlib.Path(path).unlink()
    print(", ".join(f"{kind}: {counts[kind]}" for kind in sorted(counts)))
    sys.exit(1 if bad else 0)


main()
