# SPDX-License-Identifier: BSD-3-Clause
"""Peer: ResNet18 on FashionMNIST on a CUDA device, as a script that knows what
is fast would train it: the data set lies on the device, channels last, bfloat16
autocast, a fused SGD, the loss of an epoch is read at its end.

Prints a line of JSON: seconds of `--epochs` epochs with a test after each, after
the first steps, which compile or record, and the last accuracy.
"""

import argparse
import gzip
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "oracle"))
from models_reference import make_model


def read(path, offset):
    with gzip.open(path) as file:
        return torch.frombuffer(bytearray(file.read()[offset:]), dtype=torch.uint8)


def data(folder, kind):
    images = read(folder / f"{kind}-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28)
    labels = read(folder / f"{kind}-labels-idx1-ubyte.gz", 8).long()
    return images.cuda(), labels.cuda()


class Steps:
    """Forward, loss and backward of a batch, run in one of three ways."""

    def __init__(self, model, how):
        self.model = model
        self.how = how
        self.loss = torch.nn.CrossEntropyLoss()
        self.compute = self.eager
        self.infer = self.test_eager
        if how == "compile":
            self.compute = torch.compile(self.eager, mode="reduce-overhead")
            self.infer = torch.compile(self.test_eager, mode="reduce-overhead")
        self.graph = None

    def eager(self, images, targets):
        with torch.autocast("cuda", torch.bfloat16):
            outputs = self.model(images)
            return self.loss(outputs, targets), outputs

    def test_eager(self, images):
        with torch.autocast("cuda", torch.bfloat16):
            return self.model(images).argmax(1)

    def train(self, images, targets):
        if self.how != "graph":
            for parameter in self.model.parameters():
                parameter.grad = None
            loss, _ = self.compute(images, targets)
            loss.backward()
            return loss.detach()
        if self.graph is None:
            self.record(images, targets)
        self.images.copy_(images)
        self.targets.copy_(targets)
        self.graph.replay()
        return self.result

    def record(self, images, targets):
        self.images, self.targets = images.clone(), targets.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.model.zero_grad(set_to_none=True)
                self.eager(self.images, self.targets)[0].backward()
        torch.cuda.current_stream().wait_stream(stream)
        self.model.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            loss, _ = self.eager(self.images, self.targets)
            loss.backward()
            self.result = loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=pathlib.Path, required=True)
    parser.add_argument("--how", choices=["eager", "compile", "graph"], required=True)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()

    torch.manual_seed(1)
    model = make_model("resnet18", num_classes=10, in_channels=1)
    model = model.cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9,
                                weight_decay=1e-4, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    train_images, train_labels = data(args.data_dir, "train")
    test_images, test_labels = data(args.data_dir, "t10k")
    steps = Steps(model, args.how)

    def batch_of(images, labels, index):
        return images[index].float() / 255, labels[index]

    def train_epoch(limit=None):
        model.train()
        total = torch.zeros((), device="cuda")
        order = torch.randperm(len(train_images), device="cuda")
        # The last, smaller batch is left out: a graph or a compiled step of
        # another shape would cost the peer more than it.
        whole = len(order) // args.batch * args.batch
        for index in order[:whole].split(args.batch)[:limit]:
            total += steps.train(*batch_of(train_images, train_labels, index))
            optimizer.step()
        return total.item()

    @torch.no_grad()
    def test():
        model.eval()
        hits = torch.zeros((), dtype=torch.long, device="cuda")
        for first in range(0, len(test_images), 1000):
            index = slice(first, first + 1000)
            images, labels = batch_of(test_images, test_labels, index)
            hits += (steps.infer(images) == labels).sum()
        return 100 * hits.item() / len(test_images)

    start = time.perf_counter()
    train_epoch(limit=4)
    test()
    torch.cuda.synchronize()
    warm_up = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(args.epochs):
        train_epoch()
        schedule.step()
        accuracy = test()
    torch.cuda.synchronize()
    print(json.dumps({
        "how": args.how, "epochs": args.epochs, "batch": args.batch,
        "seconds": time.perf_counter() - start, "warm_up_seconds": warm_up,
        "accuracy": accuracy}))


if __name__ == "__main__":
    main()
