# SPDX-License-Identifier: BSD-3-Clause
"""Runs scripts, each in a fork of this process, which has imported torch once.

A request is a line of JSON on standard input: {"script": path, "args": [...],
"out": path, "err": path}. The answer is a line: the script's exit status.
"""

import importlib
import json
import os
import runpy
import sys
import traceback

import torch  # noqa: F401  for the forks; it starts no thread


def redirect(path, stream):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, stream)
    os.close(descriptor)


def status_of(script, args):
    """Runs it as `python SCRIPT ARGS...` does; its exit status."""
    sys.argv = [script, *args]
    sys.path[0] = os.path.dirname(script)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def run(request):
    """Never returns: the forked process ends with the script's status."""
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        redirect(request["out"], 1)
        redirect(request["err"], 2)
        status = status_of(request["script"], request["args"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def import_for(script):
    """What an optimizer's first step imports (2.7 s), for all forks from now on."""
    with open(script, encoding="utf-8") as file:
        if "optim" in file.read():
            importlib.import_module("torch._dynamo")


def main():
    for line in sys.stdin:
        request = json.loads(line)
        import_for(request["script"])
        process = os.fork()
        if process == 0:
            run(request)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
