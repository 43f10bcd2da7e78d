// SPDX-License-Identifier: BSD-3-Clause
//
// A shuffled order, equal to PyTorch's for the same seed.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::internal {

/// `torch.randperm(n, generator=g)` with `g` a fresh CPU generator seeded
/// with `seed`.
std::vector<std::int64_t> permutation(std::int64_t n, std::uint64_t seed);

} // namespace lockstep::internal
