// SPDX-License-Identifier: BSD-3-Clause
//
// Files of about n bytes that ask for much more: each repeats what it holds
// once, or has so many of one thing that going over all of it for each would
// take the square.
#pragma once

#include <cstddef>
#include <map>
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
/// Very many of one thing, each of which may lead to all the others.
std::vector<HostileFile> hostile_crowds();
/// One long value that very many others share.
std::vector<HostileFile> hostile_shared();

/// Bytes by their names.
using Files = std::map<std::string, std::string>;

/// The same of a checkpoint of several files.
struct HostileFolder {
  std::string name = {};
  /// Which of the files is opened; empty for the folder.
  std::string path = {};
  /// Units: bytes of all files, about.
  Files (*make)(std::size_t n) = nullptr;
};

std::vector<HostileFolder> hostile_folders();

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
