# SPDX-License-Identifier: BSD-3-Clause
"""What CPython's unpickler makes of UNICODE opcodes: ckpt_unicode_escapes.py FILE

For each line of FILE prints "=" and the text in hex (UTF-8, surrogates kept), or "refused".
"""
import pickle
import sys

with open(sys.argv[1], "rb") as file:
    for line in file.read().split(b"\n")[:-1]:
        try:
            print("=" + pickle.loads(b"V" + line + b"\n.").encode("utf-8", "surrogatepass").hex())
        except UnicodeDecodeError:
            print("refused")
