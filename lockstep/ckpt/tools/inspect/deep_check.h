// SPDX-License-Identifier: BSD-3-Clause
//
// Reads every element: the content digest, and tensors that hold NaN or Inf.
//   auto result = check_elements(file.root);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/ckpt/load.h"

namespace lockstep::ckpt {

/// A tensor with elements that are not finite numbers.
struct NotFinite {
  std::string name = {};
  std::uint64_t nan_count = 0;
  std::uint64_t inf_count = 0;
};

/// What the elements tell.
struct DeepCheck {
  /// 64 hex digits, see digest.h.
  std::string digest = {};
  std::uint64_t elements = 0;
  std::vector<NotFinite> not_finite = {};
};

/// Errors: as `digest_rows`.
Result<DeepCheck> check_elements(const Value& root, const Limits& limits = {});

} // namespace lockstep::ckpt
