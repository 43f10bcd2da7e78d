# SPDX-License-Identifier: BSD-3-Clause
"""Finds things in pictures: walk 2 of docs/own_data.md with torchvision.

    masks_torchvision.py streets PHOTO...
"""
import csv
import pathlib
import sys

import torch
import torchvision
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split
from torchmetrics.segmentation import DiceScore, MeanIoU
from torchvision.transforms import v2
from torchvision.tv_tensors import Image as ImageTensor
from torchvision.tv_tensors import Mask

SIZE, EPOCHS, BATCH, IGNORED = 32, 12, 8, 255
TO_INPUT = v2.Compose([
    v2.Resize(SIZE), v2.CenterCrop(SIZE),
    v2.ToDtype({ImageTensor: torch.float32, Mask: torch.int64, "others": None},
               scale=True),
    v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])


class Scenes(Dataset):
    def __init__(self, folder):
        self.images = sorted((folder / "images").iterdir())
        self.masks = folder / "masks"

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        path = self.images[i]
        image = v2.functional.pil_to_tensor(Image.open(path).convert("RGB"))
        mask = v2.functional.pil_to_tensor(
            Image.open(self.masks / f"{path.stem}.png"))
        image, mask = TO_INPUT(ImageTensor(image), Mask(mask))
        return image, mask[0]


def loss_of(outputs, masks):
    return nn.functional.cross_entropy(outputs, masks, ignore_index=IGNORED)


def judge(model, loader, classes):
    """Intersection over union and Dice of each class."""
    iou = MeanIoU(len(classes), per_class=True, input_format="index")
    dice = DiceScore(len(classes), average=None, input_format="index")
    model.eval()
    with torch.no_grad():
        for images, masks in loader:
            found = model(images)["out"].argmax(1)
            found = torch.where(masks == IGNORED, 0, found)
            masks = torch.where(masks == IGNORED, 0, masks)
            iou.update(found, masks)
            dice.update(found, masks)
    return iou.compute(), dice.compute()


def train(model, loader, test_loader, classes, path):
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    best = -1.0
    for epoch in range(EPOCHS):
        model.train()
        for images, masks in loader:
            loss = loss_of(model(images)["out"], masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        iou = judge(model, test_loader, classes)[0].mean().item()
        print(f"epoch {epoch + 1}: mean IoU {iou:.4f}")
        if iou > best:
            best = iou
            torch.save(model.state_dict(), path)


def predict(model, photos, folder):
    folder.mkdir(exist_ok=True)
    writer = csv.writer(sys.stdout)
    writer.writerow(["path", "mask"])
    model.eval()
    for photo in photos:
        image = v2.functional.pil_to_tensor(Image.open(photo).convert("RGB"))
        # One look at the whole picture, squeezed into a square.
        small = v2.functional.resize(ImageTensor(image), [SIZE, SIZE])
        with torch.no_grad():
            outputs = model(TO_INPUT(small)[None])["out"]
        outputs = nn.functional.interpolate(
            outputs, size=image.shape[1:], mode="bilinear")
        mask = folder / f"{pathlib.Path(photo).stem}.png"
        v2.functional.to_pil_image(
            outputs.argmax(1).to(torch.uint8)).save(mask)
        writer.writerow([photo, mask])


def main():
    folder, photos = pathlib.Path(sys.argv[1]), sys.argv[2:]
    path = pathlib.Path("model_best.pth.tar")
    torch.manual_seed(0)
    classes = (folder / "classes.txt").read_text().splitlines()
    train_data, test_data = random_split(Scenes(folder), [0.8, 0.2])
    test_loader = DataLoader(test_data, BATCH)
    model = torchvision.models.segmentation.fcn_resnet50(
        weights_backbone=None, num_classes=len(classes))
    train(model, DataLoader(train_data, BATCH, shuffle=True), test_loader,
          classes, path)
    model.load_state_dict(torch.load(path))
    for name, *numbers in zip(classes, *judge(model, test_loader, classes)):
        print(f"{name:16} iou {numbers[0]:.4f}  dice {numbers[1]:.4f}")
    predict(model, photos, pathlib.Path("masks"))


if __name__ == "__main__":
    main()
