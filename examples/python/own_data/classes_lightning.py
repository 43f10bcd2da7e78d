# SPDX-License-Identifier: BSD-3-Clause
"""Names pictures: walk 1 of docs/own_data.md with Lightning.

    classes_lightning.py animals PHOTO...
"""
import csv
import sys

import lightning
import torch
import torchvision
from lightning.pytorch.callbacks import ModelCheckpoint
from PIL import Image
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchmetrics.classification import MulticlassAccuracy
from torchvision import transforms

SIZE, EPOCHS, BATCH = 64, 6, 8
TO_INPUT = transforms.Compose([
    transforms.Resize(SIZE), transforms.CenterCrop(SIZE), transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])


class Classifier(lightning.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.save_hyperparameters()
        self.model = torchvision.models.resnet18(num_classes=len(classes))
        self.accuracy = MulticlassAccuracy(len(classes), average="micro")

    def forward(self, images):
        return self.model(images)

    def training_step(self, batch, _):
        images, targets = batch
        return nn.functional.cross_entropy(self(images), targets)

    def validation_step(self, batch, _):
        images, targets = batch
        self.accuracy(self(images), targets)
        self.log("accuracy", self.accuracy, prog_bar=True)

    def predict_step(self, batch, _):
        return self(batch[0]).softmax(1)

    def configure_optimizers(self):
        return torch.optim.SGD(
            self.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


class Photos(torch.utils.data.Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return TO_INPUT(Image.open(self.paths[i]).convert("RGB")), 0


def main():
    folder, *photos = sys.argv[1:]
    lightning.seed_everything(0)
    data = torchvision.datasets.ImageFolder(folder, TO_INPUT)
    train_part, test_part = train_test_split(
        range(len(data)), test_size=0.2, stratify=data.targets, random_state=0)
    train_loader = DataLoader(Subset(data, train_part), BATCH, shuffle=True)
    test_loader = DataLoader(Subset(data, test_part), BATCH)
    best = ModelCheckpoint(monitor="accuracy", mode="max", filename="best")
    trainer = lightning.Trainer(
        max_epochs=EPOCHS, callbacks=[best], log_every_n_steps=1)
    trainer.fit(Classifier(data.classes), train_loader, test_loader)

    model = Classifier.load_from_checkpoint(best.best_model_path)
    scores = torch.cat(trainer.predict(model, test_loader))
    targets = [data.targets[i] for i in test_part]
    print(classification_report(
        targets, scores.argmax(1), target_names=data.classes))
    print(confusion_matrix(targets, scores.argmax(1)))

    writer = csv.writer(sys.stdout)
    writer.writerow(["path", "class", "score", "class_2", "score_2",
                     "class_3", "score_3"])
    photo_loader = DataLoader(Photos(photos), BATCH)
    scores = torch.cat(trainer.predict(model, photo_loader))
    for photo, row in zip(photos, scores):
        values, top = row.topk(3)
        named = zip((data.classes[i] for i in top), values.tolist())
        writer.writerow([photo, *(cell for pair in named for cell in pair)])


if __name__ == "__main__":
    main()
