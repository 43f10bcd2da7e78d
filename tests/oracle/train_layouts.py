# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints as other people's training scripts write them.

torch 2.13. Argument: a folder. Trains examples/python/train.py's model for two
epochs, saves after the first, each layout to a file of its name, and prints the
losses of the second, one hexadecimal float per line: whoever goes on from a file
finds the same. The rate drops to a tenth after each epoch.
"""
import argparse
import pathlib
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/python"
sys.path.insert(0, str(EXAMPLES))
from train import MLP, fashion_mnist  # noqa: E402

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
EPOCHS_DONE = 1
# Higher than any accuracy, so that who reads it keeps it.
BEST = 99.5


class Run:
    """Model, optimizer, scheduler and the losses of the next epoch."""

    def __init__(self):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = MLP()
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        data = fashion_mnist(DATA, "train", 256)
        self.sampler = DistributedSampler(data, num_replicas=1, rank=0)
        self.loader = DataLoader(data, 64, sampler=self.sampler)

    def train(self, epoch):
        losses = []
        self.sampler.set_epoch(epoch)
        for images, target in self.loader:
            loss = nn.functional.cross_entropy(self.model(images), target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return losses


def imagenet(run, **more):
    """examples/imagenet: `epoch` is the next one."""
    return {
        "epoch": EPOCHS_DONE,
        "arch": "mlp",
        "state_dict": run.model.state_dict(),
        "best_acc1": BEST,
        "optimizer": run.optimizer.state_dict(),
        "scheduler": run.scheduler.state_dict(),
    } | more


def imagenet_tensor(run):
    """The best accuracy as it is computed: a tensor without dimensions."""
    return imagenet(run, best_acc1=torch.tensor(BEST))


def imagenet_cuda(run):
    """As saved on a machine with GPUs: `main` makes the file say so."""
    return imagenet_tensor(run)


def imagenet_wrapped(run):
    """From inside a DataParallel, all keys begin with "module."."""
    wrapped = nn.DataParallel(run.model)
    return imagenet(run, state_dict=wrapped.state_dict())


def imagenet_old(run):
    """Without a scheduler; the rate of an epoch is set when it begins."""
    state = imagenet(run)
    del state["scheduler"]
    for group in state["optimizer"]["param_groups"]:
        del group["initial_lr"]
        group["lr"] = 0.05
    return state


def without_scheduler(run):
    """A script that forgot its scheduler: the optimizer knows the rate."""
    state = imagenet(run)
    del state["scheduler"]
    return state


def three_epochs_done(run):
    """The same, later."""
    return without_scheduler(run) | {"epoch": 3}


def torchvision(run):
    """references/classification: `epoch` is the last one done."""
    return {
        "model": run.model.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "lr_scheduler": run.scheduler.state_dict(),
        "epoch": EPOCHS_DONE - 1,
        "args": argparse.Namespace(model="mlp", lr=0.05, device="cuda"),
    }


def timm(run):
    """CheckpointSaver, the rate of the next epoch set before it."""
    return {
        "epoch": EPOCHS_DONE - 1,
        "arch": "mlp",
        "state_dict": run.model.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "version": 2,
        "args": argparse.Namespace(model="mlp", lr=0.05, sched="step"),
        "metric": BEST,
    }


def timm_late(run):
    """The same, the rate of the next epoch set after it."""
    state = timm(run)
    state["optimizer"]["param_groups"][0]["lr"] = 0.05
    return state


def notes(run):
    """{epoch, model, optimizer, scheduler}: `epoch` is the last one done."""
    return {
        "epoch": EPOCHS_DONE - 1,
        "model": run.model.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "scheduler": run.scheduler.state_dict(),
    }


def tutorial(run):
    """"Saving and loading a general checkpoint": `epoch` is the last one done."""
    return {
        "epoch": EPOCHS_DONE - 1,
        "model_state_dict": run.model.state_dict(),
        "optimizer_state_dict": run.optimizer.state_dict(),
        "loss": 0.4,
    }


def tutorial_scheduler(run):
    """The same with the schedule under the name that goes with it."""
    return tutorial(run) | {
        "scheduler_state_dict": run.scheduler.state_dict()}


def compiled(run):
    """From inside torch.compile and DataParallel."""
    return imagenet(run, state_dict={
        f"_orig_mod.module.{key}": value
        for key, value in run.model.state_dict().items()})


def timm_top5(run):
    """--eval-metric top5: the metric is no accuracy of the first guess."""
    return timm(run) | {
        "args": argparse.Namespace(model="mlp", eval_metric="top5")}


def cosine_done(run):
    """A cosine schedule that has come to its end."""
    optimizer = torch.optim.SGD(run.model.parameters(), 0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2)
    return imagenet(run, optimizer=optimizer.state_dict(),
                    scheduler=scheduler.state_dict())


def empty_optimizer(run):
    return imagenet(run, optimizer={})


def rmsprop(run):
    optimizer = torch.optim.RMSprop(run.model.parameters())
    return imagenet(run, optimizer=optimizer.state_dict())


def exponential(run):
    """The state of a scheduler that `lockstep train` lacks."""
    scheduler = torch.optim.lr_scheduler.ExponentialLR(
        torch.optim.SGD(run.model.parameters(), 0.05), 0.9)
    return imagenet(run, scheduler=scheduler.state_dict())


def without_optimizer(run):
    state = imagenet(run)
    del state["optimizer"]
    return state


def epoch_as_text(run):
    return imagenet(run, epoch="1")


def negative_epoch(run):
    return imagenet(run, epoch=-1)


def weights(run):
    return run.model.state_dict()


def weights_in_a_dict(run):
    return {"state_dict": run.model.state_dict()}


def whole_model(run):
    """torch.save(model): pickles the class."""
    return run.model


def adam(run):
    """The state of another optimizer."""
    optimizer = torch.optim.Adam(run.model.parameters())
    return imagenet(run, optimizer=optimizer.state_dict())


def cosine(run):
    """The state of another scheduler."""
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        torch.optim.SGD(run.model.parameters(), 0.05), 3)
    return imagenet(run, scheduler=scheduler.state_dict())


def one_cycle(run):
    """In the middle of a cycle: rate and momentum of now are nobody's choice."""
    optimizer = torch.optim.SGD(run.model.parameters(), 0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.4, total_steps=8)
    for _ in range(4):
        scheduler.step()  # warns: no step of the optimizer, so the model stays
    return imagenet(run, optimizer=optimizer.state_dict(),
                    scheduler=scheduler.state_dict())


def multi_step(run):
    """Milestones are a Counter."""
    optimizer = torch.optim.SGD(run.model.parameters(), 0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(
        optimizer, [5, 3, 5], gamma=0.25)
    return imagenet(run, optimizer=optimizer.state_dict(),
                    scheduler=scheduler.state_dict())


LAYOUTS = [
    imagenet, imagenet_tensor, imagenet_cuda, imagenet_wrapped, imagenet_old,
    without_scheduler, torchvision, timm, timm_late, notes,
    without_optimizer, epoch_as_text, negative_epoch, weights,
    weights_in_a_dict, whole_model, adam, cosine, one_cycle, multi_step,
    three_epochs_done, tutorial, tutorial_scheduler, compiled, timm_top5,
    cosine_done, empty_optimizer, rmsprop, exponential,
]


def main():
    folder = pathlib.Path(sys.argv[1])
    run = Run()
    for epoch in range(EPOCHS_DONE):
        run.train(epoch)
        run.scheduler.step()
    tag_of = torch.serialization.location_tag
    for layout in LAYOUTS:
        if layout is imagenet_cuda:
            torch.serialization.location_tag = lambda storage: "cuda:1"
        torch.save(layout(run), folder / f"{layout.__name__}.pth.tar")
        torch.serialization.location_tag = tag_of
    for loss in run.train(EPOCHS_DONE):
        print(loss.hex())


if __name__ == "__main__":
    main()
