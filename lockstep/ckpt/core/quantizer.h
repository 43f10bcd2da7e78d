// SPDX-License-Identifier: BSD-3-Clause
//
// Quantized tensors: what their integers stand for. Per tensor
//   value = (integer - zero_point) * scale
// and per channel the same with a scale and a zero point for each index of one
// dimension. Float zero points belong to the "float qparams" types.
//   auto quantizer = read_quantizer(tensor);       // Result<Quantizer>
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// The parameters of a quantized tensor.
struct Quantizer {
  bool is_per_channel = false;
  /// Per tensor.
  double scale = 1;
  std::int64_t zero_point = 0;
  /// Per channel: a tensor; a list of numbers in files of torch 1.3.
  Value scales = {};
  Value zero_points = {};
  /// The dimension that has a scale for each index.
  std::int64_t axis = 0;
};

/// True for qint8, quint8, qint32, quint4x2 and quint2x4.
bool is_quantized(DType dtype);

/// The parameters of `tensor`. Errors: kCorrupt (E_QPARAMS) for an unknown
/// scheme, wrong types, an axis the tensor does not have, or a number of scales
/// that is not its length there.
Result<Quantizer> read_quantizer(const Tensor& tensor);

/// What `Tensor::quantizer` holds for these parameters.
Value quantizer_value(const Quantizer& quantizer);

/// "scale 0.1, zero point 2"; "4 scales along axis 0"; "" if they are broken.
std::string quantizer_text(const Tensor& tensor);

} // namespace lockstep::ckpt
