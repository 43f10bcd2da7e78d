# SPDX-License-Identifier: BSD-3-Clause
"""Accuracy of one recipe, trained as torchvision's scripts do and by Lockstep.

    bench/parity.py [--sets digits,fashion] [--seeds 3] [--folder FOLDER]

ResNet18 on scikit-learn's digits, written as a folder of PNG files, and on
FashionMNIST, each without augmentation and with padded crops and flips. Prints
the test accuracy after the last epoch as mean and standard deviation over the
seeds. Needs torchvision and scikit-learn beside PyTorch. With FOLDER its runs
and pictures stay there.
"""

import argparse
import csv
import gzip
import pathlib
import statistics
import subprocess
import tempfile

import sklearn.datasets
import torch
import torchvision
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import transforms

ROOT = pathlib.Path(__file__).resolve().parent.parent
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
# Flags of both: the recipe.
DIGITS = {"epochs": 6, "batch_size": 64, "lr": 0.05, "weight_decay": 5e-4,
          "lr_step_size": 4, "max_train_samples": 0, "max_eval_samples": 0}
CLOTHES = {"epochs": 3, "batch_size": 128, "lr": 0.05, "weight_decay": 5e-4,
           "lr_step_size": 2, "max_train_samples": 4000,
           "max_eval_samples": 4000}


def write_digits(folder):
    """Every fifth picture is for the test."""
    data = sklearn.datasets.load_digits()
    for i, (pixels, label) in enumerate(zip(data.images, data.target)):
        path = folder / ("val" if i % 5 == 0 else "train") / str(label)
        path.mkdir(parents=True, exist_ok=True)
        grey = (pixels * 255 / 16).astype("uint8")
        Image.fromarray(grey).save(path / f"{i:04}.png")


def unpack_fashion(folder):
    """The files of Debian's package where torchvision looks for them."""
    raw = folder / "FashionMNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for path in FASHION.glob("*-ubyte.gz"):
        (raw / path.stem).write_bytes(gzip.decompress(path.read_bytes()))


def parts_of(name, folder, is_augmented):
    """Training and test set of torchvision."""
    if name == "digits":
        size = 32
        start = [transforms.Resize(size), transforms.CenterCrop(size)]
        end = [transforms.ToTensor(), transforms.Normalize(
            (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
        def make(is_train, steps):
            return torchvision.datasets.ImageFolder(
                folder / "digits" / ("train" if is_train else "val"),
                transforms.Compose(steps))
    else:
        size, start = 28, []
        end = [transforms.ToTensor(), transforms.Normalize(0.2860, 0.3530)]
        def make(is_train, steps):
            return torchvision.datasets.FashionMNIST(
                folder, is_train, transforms.Compose(steps))
    moves = [transforms.RandomCrop(size, padding=4),
             transforms.RandomHorizontalFlip()] if is_augmented else []
    return make(True, start + moves + end), make(False, start + end)


def train_in_python(name, folder, is_augmented, seed, recipe):
    torch.manual_seed(seed)
    train_data, test_data = (
        Subset(data, range(recipe[limit] or len(data))) for data, limit in zip(
            parts_of(name, folder, is_augmented),
            ("max_train_samples", "max_eval_samples")))
    model = torchvision.models.resnet18()
    if name == "fashion":
        model.conv1 = nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
    model.fc = nn.Linear(512, 10)
    optimizer = torch.optim.SGD(model.parameters(), recipe["lr"], momentum=0.9,
                                weight_decay=recipe["weight_decay"])
    schedule = torch.optim.lr_scheduler.StepLR(
        optimizer, recipe["lr_step_size"], gamma=0.1)
    loader = DataLoader(train_data, recipe["batch_size"], shuffle=True)
    for _ in range(recipe["epochs"]):
        model.train()
        for images, targets in loader:
            loss = nn.functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, targets in DataLoader(test_data, 256):
            correct += (model(images).argmax(1) == targets).sum().item()
    return 100 * correct / len(test_data)


def train_here(name, folder, is_augmented, seed, recipe):
    output = folder / f"{name}-{is_augmented}-{seed}"
    data = (["--data", folder / "digits", "--img-size", 32] if name == "digits"
            else ["--data", "fashion-mnist"])
    flags = [f"--{key.replace('_', '-')}={value}"
             for key, value in recipe.items()]
    command = [ROOT / "build/release/bin/lockstep", "train", *data, *flags,
               "--model", "resnet18", "--seed", seed, "--quiet",
               "--augment", "crop-flip" if is_augmented else "none",
               "--devices", "cpu", "--output", output]
    subprocess.run([str(word) for word in command], check=True,
                   stdout=subprocess.DEVNULL)
    with open(output / "results.csv", encoding="utf-8") as file:
        return float(list(csv.DictReader(file))[-1]["val_top1"])


def show(name, is_augmented, python, ours):
    def text(values):
        return f"{statistics.mean(values):6.2f} +- {statistics.stdev(values):.2f}"
    print(f"{name:8} {'crop, flip' if is_augmented else 'none':12}"
          f"{text(python):>16}{text(ours):>16}   "
          f"{' '.join(f'{x:.2f}' for x in python)} | "
          f"{' '.join(f'{x:.2f}' for x in ours)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sets", default="digits,fashion")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or pathlib.Path(scratch)
        write_digits(folder / "digits")
        unpack_fashion(folder)
        print(f"{'data':8} {'augmented':12}{'torchvision':>16}{'Lockstep':>16}")
        for name in args.sets.split(","):
            recipe = DIGITS if name == "digits" else CLOTHES
            for is_augmented in (False, True):
                python, ours = [], []
                for seed in range(args.seeds):
                    what = name, folder, is_augmented, seed, recipe
                    python.append(train_in_python(*what))
                    ours.append(train_here(*what))
                show(name, is_augmented, python, ours)


if __name__ == "__main__":
    main()
