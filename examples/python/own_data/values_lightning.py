# SPDX-License-Identifier: BSD-3-Clause
"""Measures pictures: walk 3 of docs/own_data.md with Lightning.

    values_lightning.py points.csv PHOTO...
"""
import csv
import pathlib
import sys

import lightning
import torch
import torchvision
from lightning.pytorch.callbacks import ModelCheckpoint
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split
from torchmetrics.regression import (
    MeanAbsoluteError, MeanSquaredError, R2Score)
from torchvision import transforms

SIZE, EPOCHS, BATCH = 32, 30, 16
TO_INPUT = transforms.Compose([
    transforms.Resize(SIZE), transforms.CenterCrop(SIZE), transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])


class Table(Dataset):
    def __init__(self, path):
        self.folder = path.parent
        with open(path, encoding="utf-8") as file:
            header, *self.rows = csv.reader(file)
        self.names = header[1:]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        path, *values = self.rows[i]
        image = Image.open(self.folder / path).convert("RGB")
        return TO_INPUT(image), torch.tensor([float(x) for x in values])


class Regressor(lightning.LightningModule):
    def __init__(self, names):
        super().__init__()
        self.save_hyperparameters()
        self.names = names
        self.model = torchvision.models.resnet18(num_classes=len(names))
        self.mae = MeanAbsoluteError(num_outputs=len(names))
        self.mse = MeanSquaredError(num_outputs=len(names))
        self.r2 = R2Score(multioutput="raw_values")

    def forward(self, images):
        return self.model(images)

    def training_step(self, batch, _):
        images, values = batch
        return nn.functional.mse_loss(self(images), values)

    def validation_step(self, batch, _):
        images, values = batch
        outputs = self(images)
        for metric in (self.mae, self.mse, self.r2):
            metric.update(outputs, values)

    def on_validation_epoch_end(self):
        mae, mse, r2 = (
            metric.compute() for metric in (self.mae, self.mse, self.r2))
        self.log("mae", mae.mean(), prog_bar=True)
        for i, name in enumerate(self.names):
            self.log_dict({
                f"mae {name}": mae[i], f"mse {name}": mse[i],
                f"rmse {name}": mse[i].sqrt(), f"r2 {name}": r2[i]})
        for metric in (self.mae, self.mse, self.r2):
            metric.reset()

    def configure_optimizers(self):
        return torch.optim.Adam(
            self.parameters(), lr=0.001, weight_decay=1e-4)


def predict(model, names, photos):
    writer = csv.writer(sys.stdout)
    writer.writerow(["path", *names])
    model.eval()
    with torch.no_grad():
        for photo in photos:
            image = TO_INPUT(Image.open(photo).convert("RGB"))
            writer.writerow([photo, *model(image[None])[0].tolist()])


def main():
    table, photos = pathlib.Path(sys.argv[1]), sys.argv[2:]
    lightning.seed_everything(0)
    data = Table(table)
    train_data, test_data = random_split(data, [0.8, 0.2])
    test_loader = DataLoader(test_data, BATCH)
    best = ModelCheckpoint(monitor="mae", mode="min", filename="best")
    trainer = lightning.Trainer(
        max_epochs=EPOCHS, callbacks=[best], log_every_n_steps=1)
    trainer.fit(Regressor(data.names),
                DataLoader(train_data, BATCH, shuffle=True), test_loader)
    model = Regressor.load_from_checkpoint(best.best_model_path)
    trainer.validate(model, test_loader)
    predict(model, data.names, photos)


if __name__ == "__main__":
    main()
