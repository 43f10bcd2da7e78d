# SPDX-License-Identifier: BSD-3-Clause
"""Finds things in pictures: walk 2 of docs/own_data.md with Lightning.

    masks_lightning.py streets PHOTO...
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


class Segmenter(lightning.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.save_hyperparameters()
        self.classes = classes
        self.model = torchvision.models.segmentation.fcn_resnet50(
            weights_backbone=None, num_classes=len(classes))
        self.iou = MeanIoU(len(classes), per_class=True, input_format="index")
        self.dice = DiceScore(
            len(classes), average=None, input_format="index")

    def forward(self, images):
        return self.model(images)["out"]

    def training_step(self, batch, _):
        images, masks = batch
        return nn.functional.cross_entropy(
            self(images), masks, ignore_index=IGNORED)

    def validation_step(self, batch, _):
        images, masks = batch
        found = torch.where(masks == IGNORED, 0, self(images).argmax(1))
        masks = torch.where(masks == IGNORED, 0, masks)
        self.iou.update(found, masks)
        self.dice.update(found, masks)

    def on_validation_epoch_end(self):
        iou, dice = self.iou.compute(), self.dice.compute()
        self.log("miou", iou.mean(), prog_bar=True)
        for i, name in enumerate(self.classes):
            self.log_dict({f"iou {name}": iou[i], f"dice {name}": dice[i]})
        self.iou.reset()
        self.dice.reset()

    def configure_optimizers(self):
        return torch.optim.SGD(
            self.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)


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
            outputs = model(TO_INPUT(small)[None])
        outputs = nn.functional.interpolate(
            outputs, size=image.shape[1:], mode="bilinear")
        mask = folder / f"{pathlib.Path(photo).stem}.png"
        v2.functional.to_pil_image(
            outputs.argmax(1).to(torch.uint8)).save(mask)
        writer.writerow([photo, mask])


def main():
    folder, photos = pathlib.Path(sys.argv[1]), sys.argv[2:]
    lightning.seed_everything(0)
    classes = (folder / "classes.txt").read_text().splitlines()
    train_data, test_data = random_split(Scenes(folder), [0.8, 0.2])
    test_loader = DataLoader(test_data, BATCH)
    best = ModelCheckpoint(monitor="miou", mode="max", filename="best")
    trainer = lightning.Trainer(
        max_epochs=EPOCHS, callbacks=[best], log_every_n_steps=1)
    trainer.fit(Segmenter(classes), DataLoader(train_data, BATCH, shuffle=True),
                test_loader)
    model = Segmenter.load_from_checkpoint(best.best_model_path)
    trainer.validate(model, test_loader)
    predict(model, photos, pathlib.Path("masks"))


if __name__ == "__main__":
    main()
