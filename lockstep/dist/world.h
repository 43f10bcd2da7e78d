// SPDX-License-Identifier: BSD-3-Clause
//
// A process group as the `World` of a run.
//   dist::GroupWorld world(dist::init_process_group());
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/base/world.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

/// Errors: those of the group's collectives.
class GroupWorld final : public World {
 public:
  explicit GroupWorld(ProcessGroup group) : group_(std::move(group)) {}

  [[nodiscard]] int rank() const override {
    return group_.rank();
  }
  [[nodiscard]] int size() const override {
    return group_.size();
  }
  void sum(std::span<double> values) override;
  bool any(bool value) override;
  void broadcast(std::vector<std::byte>& bytes) override;
  [[nodiscard]] std::vector<std::vector<std::byte>> gather(
      std::span<const std::byte> bytes) override {
    return group_.all_gather_bytes(bytes);
  }
  void barrier() override {
    group_.barrier();
  }

 private:
  ProcessGroup group_;
};

} // namespace lockstep::dist
