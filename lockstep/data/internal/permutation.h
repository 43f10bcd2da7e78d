// SPDX-License-Identifier: BSD-3-Clause
//
// What samplers draw, equal to PyTorch's for the same seed.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::internal {

/// `torch.randperm(n, generator=g)` with `g` a fresh CPU generator seeded
/// with `seed`.
std::vector<std::int64_t> permutation(std::int64_t n, std::uint64_t seed);

/// A number from the default generator, as Python's loader draws one for its
/// worker processes at the start of each epoch.
std::int64_t draw_seed();

} // namespace lockstep::internal
