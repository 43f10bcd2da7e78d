# SPDX-License-Identifier: BSD-3-Clause
"""Names pictures: walk 1 of docs/own_data.md with torchvision.

    classes_torchvision.py animals PHOTO...
"""
import csv
import pathlib
import sys

import torch
import torchvision
from PIL import Image
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import transforms

SIZE, EPOCHS, BATCH = 64, 6, 8
TO_INPUT = transforms.Compose([
    transforms.Resize(SIZE), transforms.CenterCrop(SIZE), transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])


def outputs_of(model, loader):
    model.eval()
    with torch.no_grad():
        pairs = [(model(images), targets) for images, targets in loader]
    return (torch.cat(column) for column in zip(*pairs))


def train(model, data, train_part, test_loader, path):
    loader = DataLoader(Subset(data, train_part), BATCH, shuffle=True)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    best = -1.0
    for epoch in range(EPOCHS):
        model.train()
        for images, targets in loader:
            loss = nn.functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        outputs, targets = outputs_of(model, test_loader)
        accuracy = (outputs.argmax(1) == targets).float().mean().item()
        print(f"epoch {epoch + 1}: accuracy {100 * accuracy:.2f}")
        if accuracy > best:
            best = accuracy
            torch.save({"state_dict": model.state_dict(),
                        "classes": data.classes}, path)


def judge(model, classes, loader):
    outputs, targets = outputs_of(model, loader)
    predicted = outputs.argmax(1)
    print(classification_report(targets, predicted, target_names=classes))
    print(confusion_matrix(targets, predicted))


def predict(model, classes, photos):
    model.eval()
    writer = csv.writer(sys.stdout)
    writer.writerow(["path", "class", "score", "class_2", "score_2",
                     "class_3", "score_3"])
    with torch.no_grad():
        for photo in photos:
            image = TO_INPUT(Image.open(photo).convert("RGB"))
            scores, best = model(image[None]).softmax(1)[0].topk(3)
            named = zip((classes[i] for i in best), scores.tolist())
            writer.writerow([photo, *(cell for pair in named for cell in pair)])


def main():
    folder, *photos = sys.argv[1:]
    path = pathlib.Path("model_best.pth.tar")
    torch.manual_seed(0)
    data = torchvision.datasets.ImageFolder(folder, TO_INPUT)
    train_part, test_part = train_test_split(
        range(len(data)), test_size=0.2, stratify=data.targets, random_state=0)
    test_loader = DataLoader(Subset(data, test_part), BATCH)
    model = torchvision.models.resnet18(num_classes=len(data.classes))
    train(model, data, train_part, test_loader, path)
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["state_dict"])
    judge(model, checkpoint["classes"], test_loader)
    predict(model, checkpoint["classes"], photos)


if __name__ == "__main__":
    main()
