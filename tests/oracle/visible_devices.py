# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's own parser makes of CUDA_VISIBLE_DEVICES: no arguments.

One line per text: its bytes in hexadecimal, a colon, the numbers up to the
first that is no device of 64 (the driver ends the list there). A text that
Python itself cannot read ("+") ends at that item.
"""
import os
import random

from torch.cuda import _parse_visible_devices

GOLDENS = [
    "", "1,3", "2,0", "-1", "0,-1,1", "0,0", "1gpu2,2ampere", "a,1", "1,a,2",
    " 1 , 2", "1,,2", "0x1", "+1,2", "01,1", "gpu-aa", "GPU-aa,1",
    "GPU-aa,GPU-aa", "MIG-x,GPU-y", "1, 3", "1 3", "1;3", "-0,1", "1-2", "1+2,3",
    ",", ",1", "1,", "63,64,0", "1,64,1", "\t1\n,2\r", "1,99999999999999999999,2",
    "1,99999999999999999999,99999999999999999998", "007,7", "0,1,2,3,2", " ",
    "NoDevFiles", "1.5,2", "1e1,2", "+", "1,-,2", "1,+a,2", "--1", "+-1", "1,\x1c2",
]


def parsed(text):
    os.environ["CUDA_VISIBLE_DEVICES"] = text
    try:
        return _parse_visible_devices()
    except ValueError:
        # int("+"): without the item and what is behind it.
        return parsed(text.rpartition(",")[0])


def numbers_of(text):
    numbers = []
    for item in parsed(text):
        if isinstance(item, str) or item >= 64:
            break
        numbers.append(item)
    return numbers


def main():
    rng = random.Random(7)
    texts = GOLDENS + [
        "".join(rng.choice("0123456789,,,,  +-ax\t") for _ in range(rng.randrange(12)))
        for _ in range(3000)]
    texts += [
        ",".join(rng.choice(["", " "]) + str(rng.randrange(70)) + rng.choice(["", " ", "x"])
                 for _ in range(rng.randrange(1, 7)))
        for _ in range(1000)]
    for text in texts:
        print(text.encode().hex() + ":" + " ".join(map(str, numbers_of(text))))


main()
