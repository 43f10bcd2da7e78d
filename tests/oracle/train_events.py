# SPDX-License-Identifier: BSD-3-Clause
"""What TensorBoard 2.21 reads from a folder: "tag step value" per point.

    train_events.py FOLDER
"""

import sys

from tensorboard.backend.event_processing.event_accumulator import (
    SCALARS,
    EventAccumulator,
)

events = EventAccumulator(sys.argv[1], size_guidance={SCALARS: 0})
events.Reload()
for tag in sorted(events.Tags()[SCALARS]):
    for point in events.Scalars(tag):
        print(tag, point.step, f"{point.value:.6g}", sep="\t")
