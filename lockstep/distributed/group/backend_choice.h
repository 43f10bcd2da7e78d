// SPDX-License-Identifier: BSD-3-Clause
//
// What a name of a backend means: "gloo", "cpu:gloo,cuda:nccl". Says nothing
// about whether it can be reached.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::dist {

struct BackendChoice {
  /// For tensors of the CPU, and of all other devices but those of NCCL:
  /// "gloo", "shm", or "" for what fits best; "nccl": such tensors are refused.
  std::string host = {};
  /// The first device that the text gives it: Python's name of its store.
  std::string host_device = "cpu";
  /// CUDA's tensors go over NCCL.
  bool has_nccl = false;

  [[nodiscard]] bool has_host() const {
    return host != "nccl";
  }
  /// As `backend` says it; "" for what fits best.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const BackendChoice&, const BackendChoice&) = default;
};

/// `no_nccl`: why there is none. Without a name NCCL is taken where it is: with
/// Python's ranks alone, as they take it.
/// Errors: throws kInvalidArgument for an unknown name, `no_nccl` for "nccl"
/// where there is none, kUnavailable for what no backend does.
BackendChoice parse_backend(
    const std::string& text,
    bool has_python_ranks,
    const std::optional<Error>& no_nccl);

} // namespace lockstep::dist
