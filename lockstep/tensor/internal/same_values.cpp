// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/same_values.h"

#include <cstring>

#include <ATen/ops/equal.h>

namespace lockstep {

bool same_values(const at::Tensor& a, const at::Tensor& b) {
  const bool is_plain = a.is_cpu() && a.is_non_overlapping_and_dense() &&
                        a.strides() == b.strides();
  return is_plain ? a.nbytes() == 0 || std::memcmp(
                                           a.const_data_ptr(),
                                           b.const_data_ptr(),
                                           a.nbytes()) == 0
                  : at::equal(a, b);
}

bool surely_same_values(const at::Tensor& a, const at::Tensor& b) {
  return a.is_cpu() && b.is_cpu() ? same_values(a, b)
                                  : a.const_data_ptr() == b.const_data_ptr();
}

} // namespace lockstep
