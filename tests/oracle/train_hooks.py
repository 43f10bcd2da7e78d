# SPDX-License-Identifier: BSD-3-Clause
"""Trains as a Python script with clipping, accumulation, averages, warm-up and
frozen layers would, and compares the end with a checkpoint.

torch 2.13. Arguments: settings as JSON (names of args.yaml), data folder,
checkpoint. Prints the loss of each step as a hexadecimal float, then the keys
of the checkpoint whose tensors differ, or "equal".
"""
import json
import pathlib
import sys

import torch
from torch.optim.lr_scheduler import (
    CosineAnnealingLR, LinearLR, ReduceLROnPlateau, SequentialLR, StepLR)
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from models_reference import make_model
from train_losses import FashionMNIST


def schedule_of(config, optimizer):
    epochs = config["epochs"] - config["warmup_epochs"]
    if config["lr_scheduler"] == "reducelronplateau":
        return ReduceLROnPlateau(
            optimizer, factor=config["lr_gamma"],
            patience=config["lr_patience"], min_lr=config["min_lr"])
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
            model.parameters(), lr=config["lr"],
            weight_decay=config["weight_decay"])
    return torch.optim.SGD(
        model.parameters(), lr=config["lr"], momentum=config["momentum"],
        weight_decay=config["weight_decay"])


def train_step(config, model, optimizer, batches):
    criterion = torch.nn.CrossEntropyLoss()
    optimizer.zero_grad()
    total, samples = 0.0, 0
    for images, targets in batches:
        loss = criterion(model(images), targets)
        (loss / len(batches) if len(batches) > 1 else loss).backward()
        total += loss.item() * len(targets)
        samples += len(targets)
    if config["clip_value"] > 0:
        torch.nn.utils.clip_grad_value_(
            model.parameters(), config["clip_value"])
    if config["clip_grad"] > 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), config["clip_grad"])
    optimizer.step()
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
    loader = DataLoader(
        data, batch_size=config["batch_size"], sampler=sampler)
    freezer = Freezer(model, config)
    optimizer = optimizer_of(config, model)
    schedule = schedule_of(config, optimizer)
    average = None
    if config["ema"] > 0:
        average = AveragedModel(
            model, multi_avg_fn=get_ema_multi_avg_fn(config["ema"]))
    for epoch in range(config["epochs"]):
        sampler.set_epoch(epoch)
        freezer.begin_epoch(epoch + 1)
        batches = list(loader)
        epoch_loss = 0.0
        for first in range(0, len(batches), config["accumulate"]):
            total, samples = train_step(
                config, model, optimizer,
                batches[first:first + config["accumulate"]])
            print(torch.tensor(total / samples).item().hex())
            epoch_loss += total
            if average is not None:
                average.update_parameters(model)
        if isinstance(schedule, ReduceLROnPlateau):
            schedule.step(epoch_loss / len(data))
        else:
            schedule.step()
    return model, optimizer, average, schedule


def main():
    config = json.loads(sys.argv[1])
    model, optimizer, average, schedule = train(
        config, pathlib.Path(sys.argv[2]))
    saved = torch.load(sys.argv[3], weights_only=True)
    wrong = differing(saved["state_dict"], model.state_dict())
    if average is not None:
        wrong += [
            "ema " + key for key in
            differing(saved["state_dict_ema"], average.module.state_dict())]
        if saved["ema_updates"] != average.n_averaged.item():
            wrong.append("ema_updates")
    rates = [group["lr"] for group in optimizer.param_groups]
    if rates != [group["lr"] for group in saved["optimizer"]["param_groups"]]:
        wrong.append("lr")
    for number, state in optimizer.state_dict()["state"].items():
        ours = saved["optimizer"]["state"][number]
        wrong += [
            f"optimizer {number} {key}" for key, value in state.items()
            if torch.is_tensor(value) and not torch.equal(ours[key], value)]
    schedule.load_state_dict(saved["scheduler"])  # Python goes on with it
    print(", ".join(wrong) or "equal")


if __name__ == "__main__":
    main()
