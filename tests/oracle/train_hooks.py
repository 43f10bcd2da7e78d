# SPDX-License-Identifier: BSD-3-Clause
"""Trains as a Python script with clipping, accumulation, averages, warm-up,
frozen layers, class weights, weighted samples, parameter groups and a scaled
loss would, and compares the end with a checkpoint.

torch 2.13. Arguments: settings as JSON (names of args.yaml), data folder,
checkpoint. Prints the loss of each step as a hexadecimal float, then the keys
of the checkpoint whose tensors differ, or "equal".
"""
import json
import pathlib
import sys

import torch
from torch.optim.lr_scheduler import (
    CosineAnnealingLR, LinearLR, OneCycleLR, ReduceLROnPlateau, SequentialLR,
    StepLR)
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

from models_reference import make_model
from param_groups import groups_of
from train_losses import FashionMNIST


def main_schedule_of(config, optimizer):
    epochs = config["epochs"] - config["warmup_epochs"]
    if config["lr_scheduler"] == "reducelronplateau":
        return ReduceLROnPlateau(
            optimizer, factor=config["lr_gamma"],
            patience=config["lr_patience"], min_lr=config["min_lr"])
    if config["lr_scheduler"] == "onecyclelr":
        return OneCycleLR(
            optimizer, [group["lr"] for group in optimizer.param_groups],
            total_steps=config["epochs"] * config["steps"])
    if config["lr_scheduler"] == "cosineannealinglr":
        main = CosineAnnealingLR(optimizer, epochs, eta_min=config["min_lr"])
    else:
        main = StepLR(
            optimizer, config["lr_step_size"], gamma=config["lr_gamma"])
    if config["warmup_epochs"] == 0:
        return main
    warmup = LinearLR(
        optimizer, start_factor=0.01, total_iters=config["warmup_epochs"])
    return SequentialLR(
        optimizer, [warmup, main], milestones=[config["warmup_epochs"]])


class Schedule:
    """The schedule, and torchvision's warm-up of detection beside it."""

    def __init__(self, config, optimizer):
        self.main = main_schedule_of(config, optimizer)
        self.warmup = None
        if config["warmup_steps"] > 0:
            self.warmup = LinearLR(
                optimizer, start_factor=0.01,
                total_iters=config["warmup_steps"])
        self.swa = None
        self.swa_start = config["swa_start"]
        if config["swa_lr"] > 0:
            self.swa = SWALR(optimizer, swa_lr=config["swa_lr"])

    def after_step(self):
        if isinstance(self.main, OneCycleLR):
            self.main.step()
        if self.warmup is not None:
            self.warmup.step()

    def after_epoch(self, epoch, loss):
        if self.swa is not None and epoch >= self.swa_start:
            self.swa.step()
        elif isinstance(self.main, ReduceLROnPlateau):
            self.main.step(loss)
        elif not isinstance(self.main, OneCycleLR):
            self.main.step()

    def take_over(self, saved):
        self.main.load_state_dict(saved["scheduler"])
        if self.warmup is not None:
            self.warmup.load_state_dict(saved["warmup"])
        if self.swa is not None:
            self.swa.load_state_dict(saved["swa_scheduler"])


class BalancedSampler:
    def __init__(self, labels, seed):
        weights = 1.0 / torch.bincount(labels, minlength=10).double()
        self.weights = weights[labels]
        self.seed = seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        generator = torch.Generator().manual_seed(self.seed + epoch)
        self.sampler = WeightedRandomSampler(
            self.weights, len(self.weights), generator=generator)

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return len(self.weights)


def class_weights_of(config, labels):
    if config["class_weights"] == "balanced":  # scikit-learn's formula
        counts = torch.bincount(labels, minlength=10).double()
        return (len(labels) / (10 * counts)).float()
    if config["class_weights"]:
        return torch.tensor(
            [float(text) for text in config["class_weights"].split(",")])
    return None


class Freezer:
    def __init__(self, model, config):
        self.model = model
        parts = [part for part in config["freeze"].split(",") if part]
        self.frozen = [
            parameter for name, parameter in model.named_parameters()
            if any(name == p or name.startswith(p + ".") for p in parts)]
        self.until = config["unfreeze_at"]

    def begin_epoch(self, epoch):
        is_frozen = self.until == 0 or epoch < self.until
        for parameter in self.frozen:
            parameter.requires_grad = not is_frozen
        self.model.train()
        for module in self.model.modules():
            own = list(module.parameters())
            if isinstance(module, torch.nn.BatchNorm2d) and own and not any(
                    p.requires_grad for p in own):
                module.eval()


def optimizer_of(config, model):
    if config["opt"] == "adamw":
        return torch.optim.AdamW(
            groups_of(model, config), lr=config["lr"],
            weight_decay=config["weight_decay"])
    return torch.optim.SGD(
        groups_of(model, config), lr=config["lr"], momentum=config["momentum"],
        weight_decay=config["weight_decay"])


def train_step(config, model, optimizer, batches, criterion, scaler):
    optimizer.zero_grad()
    total, samples = 0.0, 0
    for images, targets in batches:
        with torch.autocast(
                "cpu", torch.float16, enabled=config["amp"] == "fp16"):
            loss = criterion(model(images), targets)
        share = loss / len(batches) if len(batches) > 1 else loss
        scaler.scale(share).backward()
        total += loss.item() * len(targets)
        samples += len(targets)
    scaler.unscale_(optimizer)
    if config["clip_value"] > 0:
        torch.nn.utils.clip_grad_value_(
            model.parameters(), config["clip_value"])
    if config["clip_grad"] > 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), config["clip_grad"])
    scaler.step(optimizer)
    scaler.update()
    return total, samples


def differing(ours, theirs):
    return [key for key, value in theirs.items()
            if not torch.equal(ours[key], value)]


def train(config, folder):
    torch.set_num_threads(config["threads"])
    torch.manual_seed(config["seed"])
    model = make_model(config["model"], num_classes=10, in_channels=1)
    data = FashionMNIST(folder, config["max_train_samples"])
    sampler = DistributedSampler(
        data, num_replicas=1, rank=0, shuffle=True, seed=config["seed"])
    if config["sampler"] == "balanced":
        sampler = BalancedSampler(data.labels, config["seed"])
    criterion = torch.nn.CrossEntropyLoss(
        weight=class_weights_of(config, data.labels))
    scaler = torch.amp.GradScaler("cpu", enabled=config["amp"] == "fp16")
    loader = DataLoader(
        data, batch_size=config["batch_size"], sampler=sampler)
    freezer = Freezer(model, config)
    optimizer = optimizer_of(config, model)
    config["steps"] = -(-len(loader) // config["accumulate"])
    schedule = Schedule(config, optimizer)
    average = None
    if config["ema"] > 0:
        average = AveragedModel(
            model, multi_avg_fn=get_ema_multi_avg_fn(config["ema"]))
    if config["swa_start"] > 0:
        average = AveragedModel(model, use_buffers=True)
    for epoch in range(config["epochs"]):
        sampler.set_epoch(epoch)
        freezer.begin_epoch(epoch + 1)
        batches = list(loader)
        epoch_loss = 0.0
        for first in range(0, len(batches), config["accumulate"]):
            total, samples = train_step(
                config, model, optimizer,
                batches[first:first + config["accumulate"]], criterion, scaler)
            print(torch.tensor(total / samples).item().hex())
            epoch_loss += total
            schedule.after_step()
            if config["ema"] > 0:
                average.update_parameters(model)
        if 0 < config["swa_start"] <= epoch + 1:
            average.update_parameters(model)
        schedule.after_epoch(epoch + 1, epoch_loss / len(data))
    return model, optimizer, average, schedule, scaler


def main():
    config = json.loads(sys.argv[1])
    model, optimizer, average, schedule, scaler = train(
        config, pathlib.Path(sys.argv[2]))
    saved = torch.load(sys.argv[3], weights_only=True)
    wrong = differing(saved["state_dict"], model.state_dict())
    if average is not None:
        kind = "ema" if config["ema"] > 0 else "swa"
        wrong += [
            f"{kind} {key}" for key in
            differing(saved[f"state_dict_{kind}"], average.module.state_dict())]
        if saved[f"{kind}_updates"] != average.n_averaged.item():
            wrong.append("updates")
    theirs, ours = optimizer.state_dict(), saved["optimizer"]
    for option in ("lr", "weight_decay", "params"):
        if [group[option] for group in theirs["param_groups"]] != [
                group[option] for group in ours["param_groups"]]:
            wrong.append(option)
    if config["amp"] == "fp16" and scaler.state_dict() != saved["scaler"]:
        wrong.append(f"scaler {scaler.state_dict()} {saved['scaler']}")
    for number, state in optimizer.state_dict()["state"].items():
        ours = saved["optimizer"]["state"][number]
        wrong += [
            f"optimizer {number} {key}" for key, value in state.items()
            if torch.is_tensor(value) and not torch.equal(ours[key], value)]
    schedule.take_over(saved)  # Python goes on with it
    optimizer.load_state_dict(saved["optimizer"])
    print(", ".join(wrong) or "equal")


if __name__ == "__main__":
    main()
