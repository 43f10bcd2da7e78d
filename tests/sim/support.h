// SPDX-License-Identifier: BSD-3-Clause
//
// Short words for tests on simulated devices.
#pragma once

#include <string>

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"

namespace lockstep::test {

/// `sim:index`.
inline torch::Device sim(int index) {
  return {torch::kPrivateUse1, static_cast<c10::DeviceIndex>(index)};
}

/// "sim*2" as a part of a test's name: "sim2".
inline std::string name_of_devices(std::string devices) {
  std::erase(devices, '*');
  return devices;
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

/// What `run` throws; "no error" if nothing.
template <class F>
Error error_of(F&& run) {
  try {
    run();
  } catch (const Exception& e) {
    return e.error();
  }
  return {.message = "no error"};
}

/// Autocast to bfloat16 on simulated devices while it lives.
class Autocast {
 public:
  Autocast() : dtype_(at::autocast::get_autocast_dtype(torch::kPrivateUse1)) {
    at::autocast::set_autocast_enabled(torch::kPrivateUse1, true);
    at::autocast::set_autocast_dtype(torch::kPrivateUse1, torch::kBFloat16);
  }
  ~Autocast() {
    at::autocast::set_autocast_enabled(torch::kPrivateUse1, false);
    at::autocast::set_autocast_dtype(torch::kPrivateUse1, dtype_);
    at::autocast::clear_cache();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::ScalarType dtype_;
};

/// The same values, bit for bit, wherever each of them is.
inline bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.dtype() == b.dtype() && torch::equal(a.cpu(), b.cpu());
}

} // namespace lockstep::test
