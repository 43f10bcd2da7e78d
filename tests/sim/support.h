// SPDX-License-Identifier: BSD-3-Clause
//
// Short words for tests on simulated devices.
#pragma once

#include <string>

#include <torch/torch.h>

namespace lockstep::test {

/// `sim:index`.
inline torch::Device sim(int index) {
  return torch::Device(
      torch::kPrivateUse1,
      static_cast<c10::DeviceIndex>(index));
}

/// LibTorch's message of what `run` throws, "" if nothing.
template <class F>
std::string torch_error(F&& run) {
  try {
    run();
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  }
  return "";
}

/// The same values, bit for bit, wherever each of them is.
inline bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.dtype() == b.dtype() && torch::equal(a.cpu(), b.cpu());
}

} // namespace lockstep::test
