// SPDX-License-Identifier: BSD-3-Clause
//
// Python's torch.autocast:
//   {
//     const Autocast autocast(at::kCPU, at::kBFloat16);
//     loss = criterion(net->forward(images), targets);
//   }
//   loss.backward();
// Weights stay float32; operations that gain by it, such as convolutions and
// matrix products, compute in the other type.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#pragma GCC visibility push(default)
namespace lockstep {

/// For operations of this thread on devices of one type, and of the replicas
/// that it runs. May be nested; at the end of the outermost the copies of
/// weights that were made go. Threads: any, each its own.
class Autocast {
 public:
  Autocast(c10::DeviceType device, c10::ScalarType type);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool was_enabled_;
  c10::ScalarType old_type_;
};

/// Whether this processor, or the current CUDA device, is known to multiply
/// numbers of bfloat16. Without such instructions LibTorch converts each to
/// float32 and back: bfloat16 is then several times slower than float32.
bool is_bfloat16_fast(c10::DeviceType device);

} // namespace lockstep
#pragma GCC visibility pop
