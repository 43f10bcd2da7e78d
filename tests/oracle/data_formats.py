# SPDX-License-Identifier: BSD-3-Clause
"""Data in the formats that open_dataset reads, and what Python reads of them.

    data_formats.py KIND FOLDER

Writes FOLDER/data (or FOLDER/data.ENDING), and of the first part's samples in
their order FOLDER/x.bin (float32) and FOLDER/y.bin (int64, of values float32).
"""

import pathlib
import pickle
import struct
import sys

import numpy
import safetensors.numpy
import torch
from PIL import Image

KIND = sys.argv[1]
FOLDER = pathlib.Path(sys.argv[2])
DATA = FOLDER / "data"
RANDOM = numpy.random.default_rng(36)
CIFAR10 = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
CIFAR100 = ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
SIZE = 32


def pixels(*shape):
    return RANDOM.integers(0, 256, shape, dtype=numpy.uint8)


def expect(x, y, y_type=numpy.int64):
    x = numpy.ascontiguousarray(x, dtype=numpy.float32)
    (FOLDER / "x.bin").write_bytes(x.tobytes())
    (FOLDER / "y.bin").write_bytes(numpy.ascontiguousarray(y, dtype=y_type).tobytes())


def normalised(images, mean_and_std):
    """images: [N, C, H, W] uint8 or float of 0 to 255."""
    mean, std = (torch.tensor(v)[:, None, None] for v in mean_and_std)
    images = torch.as_tensor(images).float()
    return ((images / 255 - mean) / std).numpy()


def scaled(images):
    return (torch.from_numpy(images).float() / 255).numpy()


# As Python 2 pickled the published files: texts and bytes are "str".
def python2_text(text):
    text = text.encode() if isinstance(text, str) else text
    if len(text) < 256:
        return b"U" + bytes([len(text)]) + text
    return b"T" + struct.pack("<i", len(text)) + text


def python2_array(array):
    dtype = (b"cnumpy\ndtype\n" + b"(" + python2_text("u1") + b"K\x00K\x01tR"
             + b"(K\x03" + python2_text("|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb")
    shape = b"(" + b"".join(b"J" + struct.pack("<i", n) for n in array.shape) + b"t"
    return (b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
            + b"K\x00\x85" + python2_text("b") + b"\x87R"
            + b"(K\x01" + shape + dtype + b"\x89" + python2_text(array.tobytes()) + b"tb")


def python2_list(items):
    return b"](" + b"".join(items) + b"e"


def python2_dict(items):
    pairs = b"".join(python2_text(k) + v for k, v in items.items())
    return b"\x80\x02}(" + pairs + b"u."


def python2_batch(images, key, labels):
    flat = images.reshape(len(images), -1)
    bytes_ = python2_dict({
        "data": python2_array(flat),
        key: python2_list([b"K" + bytes([n]) for n in labels]),
        "filenames": python2_list([python2_text(f"{n}.png") for n in labels])})
    back = pickle.loads(bytes_, encoding="bytes")
    assert (back[b"data"] == flat).all() and back[key.encode()] == list(labels)
    return bytes_


def cifar(classes, is_binary):
    is_ten = classes == 10
    names = [f"class {i} \u732b" for i in range(classes)]
    files = [f"data_batch_{i}" for i in range(1, 6)] if is_ten else ["train"]
    folder = DATA / (("cifar-10-batches-bin" if is_ten else "cifar-100-binary")
                     if is_binary else
                     ("cifar-10-batches-py" if is_ten else "cifar-100-python"))
    folder.mkdir(parents=True)
    key = "labels" if is_ten else "fine_labels"
    all_images, all_labels = [], []
    for name in files + ["test_batch" if is_ten else "test"]:
        images = pixels(4, 3, 32, 32)
        labels = [int(n) for n in RANDOM.integers(0, classes, 4)]
        if is_binary:
            front = [b"" if is_ten else b"\x07"]
            records = [front[0] + bytes([n]) + i.tobytes() for n, i in zip(labels, images)]
            (folder / (name + ".bin")).write_bytes(b"".join(records))
        elif name.endswith("1"):  # as Python 3 writes it
            (folder / name).write_bytes(pickle.dumps(
                {b"data": images.reshape(4, -1), key.encode(): labels}, protocol=2))
        else:
            (folder / name).write_bytes(python2_batch(images, key, labels))
        if name in files:
            all_images.append(images)
            all_labels += labels
    if is_binary:
        text = "batches.meta.txt" if is_ten else "fine_label_names.txt"
        (folder / text).write_text("\n".join(names) + "\n\n", encoding="utf-8")
    else:
        meta = "label_names" if is_ten else "fine_label_names"
        (folder / ("batches.meta" if is_ten else "meta")).write_bytes(
            python2_dict({meta: python2_list([python2_text(n) for n in names])}))
    expect(normalised(numpy.concatenate(all_images), CIFAR10 if is_ten else CIFAR100),
           all_labels)


def idx_bytes(array):
    return (bytes([0, 0, 8, array.ndim])
            + b"".join(struct.pack(">I", n) for n in array.shape) + array.tobytes())


def idx(shape, first, prefix):
    DATA.mkdir(parents=True)
    rank = len(shape) + 1
    images = pixels(7, *shape)
    labels = (numpy.arange(7) % 5 + first).astype(numpy.uint8)
    for part, n in (("train", 7), ("test" if prefix else "t10k", 3)):
        (DATA / f"{prefix}{part}-images-idx{rank}-ubyte").write_bytes(idx_bytes(images[:n]))
        (DATA / f"{prefix}{part}-labels-idx1-ubyte").write_bytes(idx_bytes(labels[:n]))
    if len(shape) == 3:
        images = images.transpose(0, 3, 1, 2)
    expect(scaled(images), labels.astype(int) - first)


def arrays(ending):
    x = pixels(6, 9, 7, 3)
    y = numpy.array([0, 2, 1, 2, 0, 1], dtype=numpy.int32)
    parts = {"X_train": x, "y_train": y, "X_test": x[:2], "y_test": y[:2]}
    path = FOLDER / ("data." + ending)
    if ending == "npz":
        numpy.savez(path, **parts)
    elif ending == "safetensors":
        safetensors.numpy.save_file(parts, path)
    else:
        torch.save({k: torch.from_numpy(v) for k, v in parts.items()}, path)
    expect(scaled(x.transpose(0, 3, 1, 2)), y)


def values():
    x = RANDOM.normal(size=(5, 4))
    y = RANDOM.normal(size=(5, 2)).astype(numpy.float16)
    DATA.mkdir()
    numpy.savez_compressed(DATA / "train.npz", x=numpy.asfortranarray(x), y=y)
    numpy.savez(DATA / "val.npz", x=x[:2], y=y[:2])
    expect(x, y, numpy.float32)


def masks():
    x = pixels(4, 3, 6, 5)
    y = RANDOM.integers(0, 4, (4, 6, 5), dtype=numpy.uint8)
    y[0, 0, 0] = 255
    DATA.mkdir()
    torch.save((torch.from_numpy(x), torch.from_numpy(y)), DATA / "train.pt")
    torch.save((torch.from_numpy(x), torch.from_numpy(y)), DATA / "test.pt")
    expect(scaled(x), y)


def fitted(image, mode):
    height, width = image.shape[1:]
    short = min(height, width)
    sizes = (SIZE * height // short, SIZE * width // short)
    options = {"antialias": True} if mode == "bilinear" else {}
    image = torch.nn.functional.interpolate(
        torch.from_numpy(image)[None].float(), size=sizes, mode=mode, **options)[0]
    top, left = (int(round((s - SIZE) / 2.0)) for s in sizes)
    return image.round().clamp(0, 255)[:, top:top + SIZE, left:left + SIZE].numpy()


def segmentation(kind):
    images, masks_ = [], []
    sizes = [(40, 61), (50, 33), (20, 90), (32, 32), (7, 9)]
    for part in ("train", "val"):
        for folder in ("images", "masks"):
            (DATA / part / folder).mkdir(parents=True)
        for i, (height, width) in enumerate(sizes):
            image = pixels(height, width, 3)
            mask = RANDOM.integers(0, 5, (height, width), dtype=numpy.uint8)
            mask[RANDOM.random((height, width)) < 0.1] = 255
            Image.fromarray(image).save(DATA / part / f"images/{i}\u732b.png")
            if kind == "palette":
                picture = Image.fromarray(mask, mode="P")
                picture.putpalette(list(RANDOM.integers(0, 256, 768)))
            elif kind == "wide":
                picture = Image.fromarray(mask.astype(numpy.uint16))
            else:
                picture = Image.fromarray(mask)
            picture.save(DATA / part / f"masks/{i}\u732b.png")
            if part == "train":
                images.append(fitted(image.transpose(2, 0, 1), "bilinear"))
                masks_.append(fitted(mask[None], "nearest")[0])
    expect(normalised(numpy.stack(images), IMAGENET), numpy.stack(masks_))


def csv_numbers():
    x = RANDOM.normal(size=(6, 3)).astype(numpy.float32)
    names = ["b", "a", "\u732b, \"x\"", "a", "b", "b"]
    lines = ["one,two,three,kind"]
    lines += [",".join(repr(float(v)) for v in row) + ',"' + n.replace('"', '""') + '"'
              for row, n in zip(x, names)]
    DATA.mkdir()
    for part, end in (("train", "\r\n"), ("val", "\n")):
        (DATA / (part + ".csv")).write_bytes(end.join(lines).encode())
    order = sorted(set(names))
    expect(x, [order.index(n) for n in names])


def csv_images():
    (DATA / "pictures").mkdir(parents=True)
    lines, images, targets = ["\ufefffile;height;width"], [], []
    for i, (height, width) in enumerate([(40, 61), (50, 33), (33, 33), (90, 50)]):
        image = pixels(height, width, 3)
        Image.fromarray(image).save(DATA / f"pictures/{i}\u732b.png")
        images.append(fitted(image.transpose(2, 0, 1), "bilinear"))
        targets.append((height / 8, width / 8))
        lines.append(f"pictures/{i}\u732b.png; {height / 8} ;{width / 8}")
    (DATA / "train.csv").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    (DATA / "val.csv").write_text("\n".join(lines[:3]), encoding="utf-8")
    expect(normalised(numpy.stack(images), IMAGENET), targets, numpy.float32)


KINDS = {
    "cifar10-binary": lambda: cifar(10, True),
    "cifar10-pickles": lambda: cifar(10, False),
    "cifar100-binary": lambda: cifar(100, True),
    "cifar100-pickles": lambda: cifar(100, False),
    "idx": lambda: idx((9, 6), 0, ""),
    "idx-letters": lambda: idx((5, 5), 1, "emnist-letters-"),
    "idx-colours": lambda: idx((8, 6, 3), 0, "own-"),
    "npz": lambda: arrays("npz"),
    "safetensors": lambda: arrays("safetensors"),
    "pt": lambda: arrays("pt"),
    "values": values,
    "masks": masks,
    "palette": lambda: segmentation("palette"),
    "grey": lambda: segmentation("grey"),
    "wide": lambda: segmentation("wide"),
    "csv-numbers": csv_numbers,
    "csv-images": csv_images,
}
KINDS[KIND]()
