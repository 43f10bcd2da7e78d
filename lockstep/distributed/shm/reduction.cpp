// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/shm/reduction.h"

#include <algorithm>
#include <array>

#include <ATen/ops/add.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>

namespace lockstep::dist::shm {
namespace {

using at::Tensor;
using JoinTwo = void (*)(Tensor& result, const Tensor& a, const Tensor& b);

struct Row {
  c10d::ReduceOp::RedOpType op = c10d::ReduceOp::UNUSED;
  bool takes_complex = false;
  JoinTwo join = nullptr;
};

// Sums of bool are "or": the byte 2 would be no bool.
constexpr std::array kRows{
    Row{c10d::ReduceOp::SUM,
        true,
        [](Tensor& r, const Tensor& a, const Tensor& b) {
          at::add_out(r, a, b);
        }},
    Row{c10d::ReduceOp::PRODUCT,
        true,
        [](Tensor& r, const Tensor& a, const Tensor& b) {
          at::mul_out(r, a, b);
        }},
    Row{c10d::ReduceOp::MIN,
        false,
        [](Tensor& r, const Tensor& a, const Tensor& b) {
          at::minimum_out(r, a, b);
        }},
    Row{c10d::ReduceOp::MAX,
        false,
        [](Tensor& r, const Tensor& a, const Tensor& b) {
          at::maximum_out(r, a, b);
        }}};

/// Those for which LibTorch has kernels, also for a single number.
bool is_joined(const Row& row, c10::ScalarType dtype) {
  if (c10::isComplexType(dtype)) {
    return row.takes_complex && dtype != c10::ScalarType::ComplexHalf;
  }
  return (c10::isFloatingType(dtype) && !c10::isFloat8Type(dtype)) ||
         (c10::isIntegralType(dtype, /*includeBool=*/true) &&
          !c10::isBarebonesUnsignedType(dtype));
}

} // namespace

Join join_of(const c10d::ReduceOp& op, c10::ScalarType dtype) {
  if (op == c10d::ReduceOp::SUM) { // that of the two parts
    dtype = c10::toRealValueType(dtype);
  }
  const auto* const row = std::ranges::find(kRows, op.op_, &Row::op);
  TORCH_CHECK(
      row != kRows.end(),
      "the backend shm has no reduction of number ",
      static_cast<int>(op.op_));
  TORCH_CHECK(
      is_joined(*row, dtype),
      "the backend shm cannot reduce ",
      c10::toString(dtype),
      " in this way");
  return [join = row->join,
          dtype](std::span<const std::byte* const> terms, Bytes result) {
    const auto count =
        static_cast<std::int64_t>(result.size() / c10::elementSize(dtype));
    const auto view = [&](const std::byte* bytes) {
      return at::from_blob(const_cast<std::byte*>(bytes), {count}, dtype);
    };
    Tensor sum = view(result.data());
    join(sum, view(terms[0]), view(terms[1]));
    for (std::size_t rank = 2; rank < terms.size(); ++rank) {
      join(sum, sum, view(terms[rank]));
    }
  };
}

} // namespace lockstep::dist::shm
