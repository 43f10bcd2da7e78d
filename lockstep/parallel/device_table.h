// SPDX-License-Identifier: BSD-3-Clause
//
// What each device of a DataParallel holds and moves, as a table like
// nvidia-smi's. It shows the two costs that data parallelism is known for: the
// first device's memory, and copies in every step.
//   DeviceMeter meter(*model);
//   for (...) { step(); meter.count_step(); }
//   fmt::print("{}", to_text(meter.table()));
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/replica_group.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// One device. Units: bytes; for copies, per step.
struct DeviceRow {
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;
  /// What `.grad` holds now.
  std::uint64_t gradients = 0;
  /// Peak less the three above: activations, inputs, results, and what else
  /// the process has there. 0 on the CPU, whose peak nobody counts.
  std::uint64_t activations = 0;
  std::uint64_t peak = 0;
  /// Indexed by `parallel::Cargo`.
  std::array<parallel::Moved, parallel::kCargoes> moved = {};
};

/// All devices of one model.
struct DeviceTable {
  std::vector<DeviceRow> rows = {};
  std::uint64_t steps = 0;
  /// (highest peak - lowest peak) / highest peak; 0 for CPU replicas, which
  /// share their memory.
  double imbalance = 0;
};

/// Counts from its construction on. The model must outlive it.
class DeviceMeter {
 public:
  /// Peaks and counts begin anew.
  explicit DeviceMeter(const DataParallelBase& model);

  /// Call after each step.
  void count_step() noexcept {
    ++steps_;
  }
  [[nodiscard]] DeviceTable table() const;

 private:
  const DataParallelBase& model_;
  std::uint64_t steps_ = 0;
};

/// Lines of equal width, one per device, and the imbalance below.
std::string to_text(const DeviceTable& table);

} // namespace lockstep
#pragma GCC visibility pop
