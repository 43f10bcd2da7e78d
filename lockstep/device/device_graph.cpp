// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/device_graph.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/internal/cuda_graph.h"

namespace lockstep {
namespace {

class SimulatedGraph final : public DeviceGraph {
 public:
  void record(const std::function<void()>& work) override {
    work_ = work;
  }
  void replay() override {
    work_();
  }

 private:
  std::function<void()> work_;
};

} // namespace

std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device) {
  if (device.is_cuda()) {
    return internal::make_cuda_graph(device);
  }
  if (device.is_privateuseone()) {
    return std::make_unique<SimulatedGraph>();
  }
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "device.graph",
       .message = format("{} has no graphs; CUDA devices do", device.str()),
       .detail = "E_BACKEND"});
}

} // namespace lockstep
