// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/quantizer.h"

#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kPerTensor = "torch.per_tensor_affine";
constexpr std::string_view kPerChannel = "torch.per_channel_affine";
constexpr std::string_view kFloatQparams =
    "torch.per_channel_affine_float_qparams";

Error bad_parameters(std::string message) {
  return corrupt_file("E_QPARAMS", "quantized tensor " + std::move(message));
}

// Number of scales or zero points; nothing if they are neither a tensor nor a
// list.
std::optional<std::int64_t> count_of(const Value& value) {
  if (const Tensor* tensor = value.as_tensor()) {
    return tensor->numel();
  }
  if (const List* list = value.as_list()) {
    return static_cast<std::int64_t>(list->items.size());
  }
  return std::nullopt;
}

Result<Quantizer> per_tensor(const std::vector<Value>& parts) {
  const auto scale = parts[1].number();
  const std::int64_t* zero_point = parts[2].as_int();
  if (parts.size() != 3 || !scale || zero_point == nullptr) {
    return bad_parameters("needs a scale and an integer zero point");
  }
  return Quantizer{.scale = *scale, .zero_point = *zero_point};
}

Result<Quantizer> per_channel(
    const std::vector<Value>& parts,
    const Tensor& tensor) {
  const std::int64_t* axis = parts.size() == 4 ? parts[3].as_int() : nullptr;
  const auto scales = count_of(parts[1]);
  const auto zero_points = count_of(parts[2]);
  if (axis == nullptr || !scales || !zero_points) {
    return bad_parameters("needs scales, zero points and an axis");
  }
  if (*axis < 0 || std::cmp_greater_equal(*axis, tensor.sizes.size())) {
    return bad_parameters(format(
        "of {} dimensions has scales along axis {}",
        tensor.sizes.size(),
        *axis));
  }
  const std::int64_t size = tensor.sizes[static_cast<std::size_t>(*axis)];
  if (*scales != size || *zero_points != size) {
    return bad_parameters(format(
        "has {} scales and {} zero points along axis {}; expected {}",
        *scales,
        *zero_points,
        *axis,
        size));
  }
  return Quantizer{
      .is_per_channel = true,
      .scales = parts[1],
      .zero_points = parts[2],
      .axis = *axis};
}

} // namespace

bool is_quantized(DType dtype) {
  return dtype >= DType::kQInt8 && dtype <= DType::kQUInt2x4;
}

Result<Quantizer> read_quantizer(const Tensor& tensor) {
  if (!is_quantized(tensor.dtype) || tensor.quantizer == nullptr) {
    return bad_parameters(
        format("of type {} without parameters", dtype_info(tensor.dtype).name));
  }
  const Tuple* parts = tensor.quantizer->as_tuple();
  const Object* scheme = parts == nullptr || parts->items.size() < 3
                             ? nullptr
                             : parts->items[0].as_object();
  if (scheme == nullptr) {
    return bad_parameters("has parameters that are not a tuple with a scheme");
  }
  if (scheme->global == kPerTensor) {
    return per_tensor(parts->items);
  }
  if (scheme->global == kPerChannel || scheme->global == kFloatQparams) {
    return per_channel(parts->items, tensor);
  }
  return bad_parameters(
      format("has the unknown scheme '{}'", escape(scheme->global)));
}

Value quantizer_value(const Quantizer& quantizer) {
  // The name Python writes for float parameters, too.
  return quantizer.is_per_channel
             ? Value::tuple(
                   {Object{.global = std::string(kPerChannel)},
                    quantizer.scales,
                    quantizer.zero_points,
                    quantizer.axis})
             : Value::tuple(
                   {Object{.global = std::string(kPerTensor)},
                    quantizer.scale,
                    quantizer.zero_point});
}

std::string quantizer_text(const Tensor& tensor) {
  const auto quantizer = read_quantizer(tensor);
  if (!quantizer) {
    return "";
  }
  if (!quantizer->is_per_channel) {
    return format(
        "scale {}, zero point {}",
        shortest(quantizer->scale),
        quantizer->zero_point);
  }
  return format(
      "{} scales along axis {}",
      count_of(quantizer->scales).value_or(0),
      quantizer->axis);
}

} // namespace lockstep::ckpt
