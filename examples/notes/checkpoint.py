# SPDX-License-Identifier: BSD-3-Clause
"""One device and many: what is saved, and how it is loaded again."""
import torch
from torch import nn


class MyModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 5)

    def forward(self, x):
        return self.fc(x)


torch.manual_seed(0)
model = nn.DataParallel(MyModule())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
best_mIoU, epoch = 0.0, 0
loss = model(torch.ones(4, 3)).square().mean()
loss.backward()
optimizer.step()
best_mIoU = 0.5

# The whole state of the training, with the weights of the inner module.
torch.save(
    {
        "epoch": epoch + 1,
        "best_mIoU": best_mIoU,
        "state_dict": model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
    }, "checkpoint.pth.tar")
torch.save(model.state_dict(), "wrapped.pth")

# Goes on.
checkpoint = torch.load("checkpoint.pth.tar", map_location="cpu")
best_mIoU = checkpoint["best_mIoU"]
model.module.load_state_dict(checkpoint["state_dict"])
optimizer.load_state_dict(checkpoint["optimizer"])
print("epoch", checkpoint["epoch"], "best", best_mIoU)
for group in optimizer.param_groups:
    group["lr"] /= 2
    print("lr", group["lr"])

# Weights with "module." into a bare module.
net = MyModule()
state_dict = torch.load("wrapped.pth", map_location="cpu")
print(list(state_dict.keys()))
try:
    net.load_state_dict(state_dict)
except RuntimeError as error:
    print(error)
net.load_state_dict({k.replace("module.", "", 1): v
                     for k, v in state_dict.items()})
print(torch.equal(net.fc.weight, model.module.fc.weight))

# By position: the first tensors of a file under other names.
param_num = 2
other = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1))
own = other.state_dict()
keys = list(own.keys())
for i, value in enumerate(list(state_dict.values())[:param_num]):
    own[keys[i]] = value
other.load_state_dict(own)
print(torch.equal(other[0].weight, net.fc.weight))
