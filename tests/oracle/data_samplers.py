# SPDX-License-Identifier: BSD-3-Clause
"""DistributedSampler of torch 2.13 over many settings.

Prints one line per case: size replicas rank seed epoch shuffle drop_last,
a colon, then the indices of that rank.
"""

import itertools

from torch.utils.data.distributed import DistributedSampler

SIZES = (0, 1, 2, 5, 7, 9, 10, 64, 101, 1000)
REPLICAS = (1, 2, 3, 5, 8)
SEEDS_AND_EPOCHS = ((0, 0), (0, 1), (1, 0), (7, 3), (-5, 2), (2**40, 9))

for size, replicas, shuffle, drop_last in itertools.product(
        SIZES, REPLICAS, (True, False), (True, False)):
    for seed, epoch in SEEDS_AND_EPOCHS if shuffle else ((0, 0),):
        for rank in range(replicas):
            sampler = DistributedSampler(
                range(size), num_replicas=replicas, rank=rank, shuffle=shuffle,
                seed=seed, drop_last=drop_last)
            sampler.set_epoch(epoch)
            print(size, replicas, rank, seed, epoch, int(shuffle),
                  int(drop_last), ":", *sampler)
