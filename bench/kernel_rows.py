# SPDX-License-Identifier: BSD-3-Clause
"""Rows of bench/run.py about convolutions: LibTorch's bits beside our ways."""

import itertools
import json
import statistics

# Channels in and out, map, kernel, stride: the layers of ResNet18 to 50 and of
# VGG with small maps, at 28, 32 or 64 pixels.
LAYERS = (
    (64, 64, 7, 3, 1),
    (512, 512, 1, 3, 1), (256, 512, 2, 3, 2), (256, 512, 2, 1, 2),
    (256, 256, 2, 3, 1), (512, 512, 2, 3, 1), (128, 256, 4, 3, 2),
    (128, 256, 4, 1, 2), (128, 128, 4, 3, 1), (256, 256, 4, 3, 1),
    (512, 512, 4, 3, 1), (64, 128, 8, 3, 2), (64, 128, 7, 3, 2),
    (64, 128, 7, 1, 2), (256, 512, 4, 3, 1), (128, 128, 7, 3, 2),
    (512, 2048, 1, 1, 1), (2048, 512, 1, 1, 1), (512, 512, 2, 3, 2),
    (1024, 2048, 2, 1, 2), (1024, 512, 2, 1, 1), (1024, 256, 2, 1, 1),
    (256, 1024, 2, 1, 1), (256, 256, 4, 3, 2), (512, 256, 4, 1, 1),
    (512, 128, 4, 1, 1), (128, 512, 4, 1, 1), (64, 256, 7, 1, 1),
    (256, 64, 7, 1, 1))


def kernel_rows(bench, rounds):
    """Times per layer and direction, of one replica of two and of one process with
    two threads; ratio exact / ours."""
    for type_, layout, (count, batch), (c_in, c_out, size, kernel, stride) in \
            itertools.product(("float32", "bfloat16"), ("nchw", "nhwc"),
                              ((1, 128), (2, 256)), LAYERS):
        layer = json.dumps({
            "threads": count, "batch": batch, "in": c_in, "out": c_out, "map": size,
            "kernel": kernel, "stride": stride, "type": type_, "layout": layout})
        measured = [bench.round(layer) for _ in range(rounds)]
        for what, first in measured[0].items():
            theirs = [m[what][0]["ms"] for m in measured]
            for i, way in list(enumerate(first))[1:]:
                ours = [m[what][i]["ms"] for m in measured]
                each = sorted(t / o for t, o in zip(theirs, ours))
                chosen = "*" if way["chosen"] else " "
                yield (f"{chosen}{way['way']} {type_} {layout} {c_in}->{c_out} "
                       f"{kernel}x{kernel}/{stride} on {size}x{size}, batch {batch}, "
                       f"{count}T: {what}", "ms",
                       {"peer": min(theirs), "ours": min(ours),
                        "ratio": statistics.median(each),
                        "low": each[0], "high": each[-1]})
