# SPDX-License-Identifier: BSD-3-Clause
"""Takes over a run's checkpoint as Python code does; prints what it found.

torch 2.13. Argument: the file. Prints epoch, arch, best_acc1, and the rate and
the epoch that optimizer and scheduler hold after loading.
"""
import sys

import torch

from models_reference import make_model


def main():
    file = torch.load(sys.argv[1], weights_only=True, mmap=True)
    model = make_model(file["arch"], num_classes=10, in_channels=1)
    model.load_state_dict(file["state_dict"])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.load_state_dict(file["optimizer"])
    scheduler.load_state_dict(file["scheduler"])
    assert len(optimizer.state) == len(list(model.parameters()))
    assert file["args"]["model"] == file["arch"]
    torch.set_rng_state(file["rng"]["cpu"])
    print(
        file["epoch"],
        file["arch"],
        file["best_acc1"],
        optimizer.param_groups[0]["lr"],
        scheduler.last_epoch,
    )


if __name__ == "__main__":
    main()
