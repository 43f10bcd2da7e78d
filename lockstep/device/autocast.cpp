// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/autocast.h"

#include <ATen/autocast_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include "lockstep/tensor/internal/cpu_features.h"

namespace lockstep {

Autocast::Autocast(c10::DeviceType device, c10::ScalarType type)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      old_type_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::set_autocast_dtype(device, type);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) {
    at::autocast::clear_cache();
  }
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, old_type_);
}

bool is_bfloat16_fast(c10::DeviceType device) {
  if (device == at::kCUDA) { // asks for compute capability 8
    return at::detail::getCUDAHooks().supportsBFloat16ConvolutionWithCuDNNv8();
  }
  const Bfloat16Products products = bfloat16_products();
  return products == Bfloat16Products::kPairs ||
         products == Bfloat16Products::kTiles;
}

} // namespace lockstep
