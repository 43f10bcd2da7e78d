// SPDX-License-Identifier: BSD-3-Clause
//
// Small IDX files for tests: made, packed, spoiled and written in one line.
//   IdxFolder folder;
//   folder.write("train-labels-idx1-ubyte.gz", gzip(idx({3}, labels)));
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

/// Bytes of an IDX file of unsigned bytes with these sizes.
std::string idx(const std::vector<std::uint32_t>& sizes, std::string elements);

/// `bytes` as a gzip stream.
std::string gzip(const std::string& bytes);

/// The name of the packed file: "x" -> "x.gz".
std::string packed(std::string_view name);

/// `count` images of 28 x 28; pixel p of image i is (7 i + p) mod 256.
std::string image_pixels(std::uint32_t count);

/// `count` labels; label i is i mod 10.
std::string label_values(std::uint32_t count);

/// `bytes` with the bits of `mask` flipped at `offset`.
std::string flip(std::string bytes, std::size_t offset, char mask = '\x01');

/// The error that `action` throws, or nothing.
std::optional<Error> error_if_any(const std::function<void()>& action);

/// The error that `action` throws; the test fails if it throws none.
Error error_of(const std::function<void()>& action);

/// Its message, or "no error".
std::string message_of(const std::function<void()>& action);

/// A folder with a whole MNIST-like training set of `kCount` samples.
class IdxFolder {
 public:
  static constexpr std::uint32_t kCount = 23;
  IdxFolder();
  /// Replaces or adds `name` (sub-folders are made).
  void write(const std::string& name, const std::string& bytes) const;
  void remove(const std::string& name) const;
  [[nodiscard]] const std::string& path() const {
    return dir_.path();
  }

 private:
  test::ScratchDir dir_;
};

inline constexpr const char* kTrainImages = "train-images-idx3-ubyte";
inline constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";

} // namespace lockstep::test
