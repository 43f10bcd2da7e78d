# SPDX-License-Identifier: BSD-3-Clause
"""Writes what torchvision says of its segmentation models, and the repository
milesial/Pytorch-UNet (21d7850) of its U-Net, into tests/models/golden:
names.txt and segmentation.json. Tests read these files; neither torchvision nor
the repository need be there.

Arguments: folder of the golden files, checkout of the repository.
"""
import json
import pathlib
import sys
import zlib

import torch
import torchvision
from torch.nn import functional as F
from torchvision.models import segmentation

from formula_weights import fill, mixed

golden, repository = (pathlib.Path(a) for a in sys.argv[1:3])
sys.path.insert(0, str(repository))
from unet import UNet  # noqa: E402

SEED = 4
SIZE = (65, 49)


def number(value):
    return float(f"{value.item():.9g}")


def samples(tensor):
    flat = tensor.detach().flatten().double()
    at = torch.arange(16) * 7919 % flat.numel()
    return {"shape": list(tensor.shape), "largest": number(flat.abs().max()),
            "mean": number(flat.mean()), "samples": [number(v) for v in flat[at]]}


def both(net, images):
    result = net(images)
    return result if isinstance(result, dict) else {"out": result}


def trained(net, images, classes):
    """Loss and gradients of one step, without dropout, in double: in float32
    they differ by some thousandths from processor to processor."""
    net.double().train()
    images = images.double()
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.eval()
    targets = (mixed("targets", 3 * SIZE[0] * SIZE[1]) * classes).long()
    targets = targets.view(3, *SIZE)
    outputs = both(net, images)
    loss = F.cross_entropy(outputs["out"], targets)
    if "aux" in outputs:
        loss = loss + 0.5 * F.cross_entropy(outputs["aux"], targets)
    loss.backward()
    norms = {key: number(p.grad.double().norm())
             for key, p in net.named_parameters() if p.dim() == 4}
    return {"loss": number(loss), "gradients": norms}


def described(name, make, classes, channels, aux, is_trained):
    torch.manual_seed(SEED)
    net = make()
    following = torch.randint(0, 2**62, ()).item()
    state = net.state_dict()
    lines = [f"{key} {str(t.dtype)[6:]} {list(t.shape)}"
             for key, t in state.items()]
    last = [key for key in state if key.endswith("weight")][-1]
    keys = dict.fromkeys(
        [next(iter(state)), last]
        + [k for k in state if k.endswith(("layer4.0.conv2.weight", "up.weight",
                                           "classifier.4.weight"))])
    initial = {key: [number(state[key].double().sum()),
                     number(state[key].flatten()[-1])] for key in keys}
    fill(net)
    images = mixed("images", 3 * channels * SIZE[0] * SIZE[1]) * 4 - 2
    images = images.view(3, channels, *SIZE)
    net.eval()
    with torch.no_grad():
        outputs = {k: samples(v) for k, v in both(net, images).items()}
    row = {"name": name, "num_classes": classes, "in_channels": channels,
           "aux_loss": aux, "entries": len(lines),
           "numbers": sum(p.numel() for p in net.parameters()),
           "names_crc": zlib.crc32(("\n".join(lines) + "\n").encode()),
           "initial": initial, "next": following, "outputs": outputs}
    if is_trained:
        row["training"] = trained(net, images, classes)
    return row, lines


def torchvisions(name, classes, channels, aux):
    def make():
        net = getattr(segmentation, name)(
            weights=None, weights_backbone=None, num_classes=classes,
            aux_loss=aux)
        if channels != 3:
            net.backbone.conv1 = torch.nn.Conv2d(
                channels, 64, kernel_size=7, stride=2, padding=3, bias=False)
        return net
    return make


def compact(lines):
    """One line for each module: its name, then each tensor's."""
    modules = {}
    for line in lines:
        key, dtype, shape = line.split(" ", 2)
        module, _, leaf = key.rpartition(".")
        text = f"{leaf} {dtype} {shape}".replace(" float32", "")
        modules.setdefault(module, []).append(text)
    return [f"{name}: {'; '.join(parts)}" for name, parts in modules.items()]


def main():
    torch.use_deterministic_algorithms(True)
    rows, names = [], []
    for name, classes, channels, aux, is_trained in [
            ("deeplabv3_resnet50", 21, 3, True, True),
            ("fcn_resnet50", 21, 3, True, True),
            ("deeplabv3_resnet101", 21, 3, True, False),
            ("fcn_resnet101", 5, 3, False, False),
            ("fcn_resnet50", 2, 1, False, False),
            ("unet", 3, 3, False, True)]:
        make = torchvisions(name, classes, channels, aux)
        if name == "unet":
            make = lambda: UNet(n_channels=channels, n_classes=classes)
        row, lines = described(name, make, classes, channels, aux, is_trained)
        rows.append(row)
        if is_trained:
            names += [f"# {name}", *compact(lines)]
        print(row["name"], row["outputs"]["out"]["largest"],
              row["outputs"]["out"]["mean"])
    golden.mkdir(exist_ok=True)
    (golden / "names.txt").write_text("\n".join(names) + "\n")
    head = json.dumps({"torch": torch.__version__,
                       "torchvision": torchvision.__version__})
    body = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (golden / "segmentation.json").write_text(
        head[:-1] + ', "models": [\n' + body + "\n]}\n")


main()
