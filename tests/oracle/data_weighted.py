# SPDX-License-Identifier: BSD-3-Clause
"""WeightedRandomSampler of torch 2.13 behind a DataLoader, three epochs each.

Prints one line per case: seed, size, num_samples, replacement, a colon, then
the indices; weight i is (7 i + 3) mod 11.
"""

import torch
from torch.utils.data import DataLoader, WeightedRandomSampler

CASES = ((0, 10, 25, True), (1, 10, 8, False), (2, 1000, 300, True),
         (3, 1000, 300, False), (-5, 2, 1, True), (2**40, 33, 33, True))

for seed, size, num_samples, replacement in CASES:
    torch.manual_seed(seed)
    weights = [(7 * i + 3) % 11 for i in range(size)]
    loader = DataLoader(
        range(size), batch_size=num_samples,
        sampler=WeightedRandomSampler(weights, num_samples, replacement))
    indices = [i for _ in range(3) for batch in loader for i in batch.tolist()]
    print(seed, size, num_samples, int(replacement), ":", *indices)
