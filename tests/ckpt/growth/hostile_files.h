// SPDX-License-Identifier: BSD-3-Clause
//
// Files of about n bytes that ask for much more: each repeats what it holds
// once, or has so many of one thing that going over all of it for each would
// take the square.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::ckpt::growth {

struct HostileFile {
  /// What grows: "encoded texts".
  std::string name = {};
  /// Units: bytes, about.
  std::string (*make)(std::size_t n) = nullptr;
};

/// Memoised values that calls, names and containers use again.
std::vector<HostileFile> hostile_calls();
/// Values by themselves: very many, shared, deep, with long names.
std::vector<HostileFile> hostile_values();
/// Records, pickles in a row, views of storages, headers.
std::vector<HostileFile> hostile_archives();
/// Programs of torch.export: weights, calls, texts that are evaluated.
std::vector<HostileFile> hostile_programs();

/// `make(i)` for each i below `count`, one after the other.
template <class Make>
std::string repeated(std::size_t count, const Make& make) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all += make(i);
  }
  return all;
}

} // namespace lockstep::ckpt::growth
