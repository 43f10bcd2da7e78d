# SPDX-License-Identifier: BSD-3-Clause
"""torch 2.13's DataLoader over 11 samples in batches of 4: what its batches are,
and what it draws from the default generator.

Prints the type and shape of each part of the batches of samples (tensor, int,
float, bool); then, for a loader that does not shuffle and one that does, the
order of two epochs and the number that the generator draws next.
"""

import torch
from torch.utils.data import DataLoader

NAMES = {torch.float32: "Float", torch.float64: "Double", torch.int64: "Long",
         torch.bool: "Bool"}
SAMPLES = [(torch.full((2, 3), float(i)), i, i / 4, i % 2 == 0) for i in range(11)]

for batch in DataLoader(SAMPLES, batch_size=4):
    print(*(f"{NAMES[part.dtype]} {list(part.shape)} {part.sum().item():g}"
            for part in batch), sep=", ")
for shuffle in (False, True):
    torch.manual_seed(5)
    loader = DataLoader(range(11), batch_size=4, shuffle=shuffle)
    order = [i for _ in range(2) for batch in loader for i in batch.tolist()]
    print(*order, torch.randint(10**6, (1,)).item())
