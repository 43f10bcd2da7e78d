// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/exported/exported_graph.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::ckpt {
namespace {

// ScalarType of the schema, which is not LibTorch's.
constexpr std::array<std::pair<std::int64_t, DType>, 21> kScalarTypes{{
    {1, DType::kUInt8},           {2, DType::kInt8},
    {3, DType::kInt16},           {4, DType::kInt32},
    {5, DType::kInt64},           {6, DType::kFloat16},
    {7, DType::kFloat32},         {8, DType::kFloat64},
    {9, DType::kComplex32},       {10, DType::kComplex64},
    {11, DType::kComplex128},     {12, DType::kBool},
    {13, DType::kBFloat16},       {28, DType::kUInt16},
    {29, DType::kFloat8E4M3FN},   {30, DType::kFloat8E5M2},
    {31, DType::kFloat8E4M3FNUZ}, {32, DType::kFloat8E5M2FNUZ},
    {33, DType::kFloat8E8M0FNU},  {34, DType::kUInt32},
    {35, DType::kUInt64},
}};

} // namespace

std::string_view ExportedSize::symbol() const noexcept {
  constexpr std::string_view kFront = "Symbol('";
  const std::string_view text = expression;
  if (!text.starts_with(kFront)) {
    return {};
  }
  const std::size_t end = text.find('\'', kFront.size());
  // The first bracket that closes ends the expression: no call around it.
  return end == std::string_view::npos || text.find(')', end) != text.size() - 1
             ? std::string_view()
             : text.substr(kFront.size(), end - kFront.size());
}

std::optional<DType> exported_dtype(std::int64_t number) {
  const auto* row = std::ranges::find(
      kScalarTypes,
      number,
      &std::pair<std::int64_t, DType>::first);
  return row == kScalarTypes.end() ? std::nullopt : std::optional(row->second);
}

} // namespace lockstep::ckpt
