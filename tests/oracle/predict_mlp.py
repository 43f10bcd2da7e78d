# SPDX-License-Identifier: BSD-3-Clause
"""What Python makes of a picture with the weights of a run of `lockstep train`.

predict_mlp.py CHECKPOINT PIXELS ARCHIVE: PIXELS are the bytes of one picture, [H,
W, 3], of the size that the model takes. Prints the share of each class, then the
paths and the names of classes of ARCHIVE, a file of `lockstep predict`, as NumPy
reads them. torch 2.13, NumPy."""
import sys

import numpy
import torch

checkpoint = torch.load(sys.argv[1], weights_only=True)
data = checkpoint["data"]
channels, height, width = data["pixels"]["shape"]
assert data["sample_shape"] == [channels, height, width]

pixels = numpy.fromfile(sys.argv[2], dtype=numpy.uint8)
image = torch.from_numpy(pixels.reshape(height, width, channels))
mean = torch.tensor(data["pixels"]["mean"]).view(-1, 1, 1)
std = torch.tensor(data["pixels"]["std"]).view(-1, 1, 1)
x = (image.permute(2, 0, 1).float() / 255 - mean) / std

# Linear layers with ReLU between them, in the order of the file.
weights = checkpoint["state_dict"]
layers = [name[: -len(".weight")] for name in weights if name.endswith(".weight")]
x = x.reshape(1, -1)
for i, name in enumerate(layers):
    x = torch.nn.functional.linear(x, weights[name + ".weight"], weights[name + ".bias"])
    if i + 1 < len(layers):
        x = torch.relu(x)
for share in torch.softmax(x, 1)[0]:
    print(repr(share.item()))

archive = numpy.load(sys.argv[3])
paths, names = (
    [row.decode() for row in archive[key].view(f"S{archive[key].shape[1]}").ravel()]
    for key in ("paths", "names")
)
print(*paths)
print(*names)
