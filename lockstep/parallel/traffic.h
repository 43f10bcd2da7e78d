// SPDX-License-Identifier: BSD-3-Clause
//
// Counts what a group moves between devices, by what it is, so that a user sees
// what a step costs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace lockstep::parallel {

/// What is moved, in the order of a step.
enum class Cargo : std::uint8_t {
  kParameters,
  kBuffers,
  kInputs,
  kOutputs,
  /// Of outputs, to the replicas, and of inputs, back from them.
  kBatchGradients,
  /// Of parameters, to the first device.
  kGradients,
};
inline constexpr std::size_t kCargoes = 6;

/// Transfers between two devices and their bytes.
struct Moved {
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;

  Moved& operator+=(const Moved& other) {
    copies += other.copies;
    bytes += other.bytes;
    return *this;
  }
};

/// What a transfer of `tensor` moves; of a sparse one its indices and values.
/// Units: bytes.
std::uint64_t bytes_of(const at::Tensor& tensor);

/// Threads: any number may add at the same time.
class Traffic {
 public:
  explicit Traffic(std::size_t replicas) : counts_(replicas) {}

  /// Adds what went to or came from the device of `replica`.
  void add(Cargo cargo, std::size_t replica, Moved moved);
  /// Since the start or the last `reset`.
  [[nodiscard]] Moved of(Cargo cargo, std::size_t replica) const;
  void reset();

 private:
  struct Count {
    std::atomic<std::uint64_t> copies{0};
    std::atomic<std::uint64_t> bytes{0};
  };
  std::vector<std::array<Count, kCargoes>> counts_;
};

} // namespace lockstep::parallel
