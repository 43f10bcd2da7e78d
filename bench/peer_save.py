# SPDX-License-Identifier: BSD-3-Clause
"""Peer: how long torch.save keeps a training loop waiting.

Weights and momentum of ResNet18; a round is one training step, which is not
timed, and one save, which is.
"""

import os
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "oracle"))
from serve import serve
from models_reference import make_model


def main():
    path = os.path.join(sys.argv[1], "peer.pth.tar")
    torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else 2)
    torch.manual_seed(0)
    model = make_model("resnet18", num_classes=10, in_channels=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_function = torch.nn.CrossEntropyLoss()
    images, targets = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))

    def run_round(_):
        loss = loss_function(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        start = time.perf_counter()
        torch.save({"epoch": 1, "state_dict": model.state_dict(),
                    "optimizer": optimizer.state_dict()}, path)
        return {"ms": 1000 * (time.perf_counter() - start)}

    run_round("")
    serve(run_round)


if __name__ == "__main__":
    main()
