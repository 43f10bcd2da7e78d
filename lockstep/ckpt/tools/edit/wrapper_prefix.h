// SPDX-License-Identifier: BSD-3-Clause
//
// What wrappers put in front of every key of a state_dict.
//   for (const WrapperPrefix& row : kWrapperPrefixes) { row.prefix ... }
#pragma once

#include <array>
#include <string_view>

namespace lockstep::ckpt::internal {

struct WrapperPrefix {
  std::string_view prefix = {};
  /// Whose it is: "torch.compile".
  std::string_view wrapper = {};
};

/// Stacked ones first, so that of several that fit the whole one is taken. The
/// same prefix twice is not here: a layer may be called `module`.
inline constexpr std::array kWrapperPrefixes{
    WrapperPrefix{
        "module._orig_mod.",
        "DataParallel or DistributedDataParallel around torch.compile"},
    WrapperPrefix{
        "_orig_mod.module.",
        "torch.compile around DataParallel or DistributedDataParallel"},
    WrapperPrefix{"module.", "DataParallel or DistributedDataParallel"},
    WrapperPrefix{"_orig_mod.", "torch.compile"}};

} // namespace lockstep::ckpt::internal
