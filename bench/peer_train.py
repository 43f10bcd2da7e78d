# SPDX-License-Identifier: BSD-3-Clause
"""Peer: one Python process that trains ResNet18 on random 28x28 images.

One round = `--steps` steps; prints images per second and the last loss.
"""

import argparse
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "oracle"))
from serve import serve
from models_reference import make_model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--layout", choices=["nchw", "nhwc"], default="nchw")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = make_model("resnet18", num_classes=10, in_channels=1)
    torch.manual_seed(1)
    images = torch.randn(args.batch, 1, 28, 28)
    targets = torch.randint(0, 10, (args.batch,))
    if args.layout == "nhwc":
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    loss_function = torch.nn.CrossEntropyLoss()

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = loss_function(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    first_loss = step()
    step()

    def run_round(_):
        start = time.perf_counter()
        for _ in range(args.steps):
            loss = step()
        seconds = time.perf_counter() - start
        return {"images_per_s": args.batch * args.steps / seconds, "loss": loss}

    serve(run_round, first_loss=first_loss)


if __name__ == "__main__":
    main()
