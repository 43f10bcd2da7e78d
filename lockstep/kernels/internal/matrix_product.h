// SPDX-License-Identifier: BSD-3-Clause
//
// Matrix products by the fastest library of LibTorch's wheel.
//
// Note [Whose product]
// bfloat16 products are oneDNN's already. Of float32, `at::mm` asks MKL, which
// takes kernels for AVX2 on processors that are not Intel's; oneDNN's inner
// product, which LibTorch has as an operator for its compiler, takes AVX-512
// there. On a processor whose AVX-512 is twice as wide as its AVX2 (AMD from
// family 1Ah on) that is twice as fast; on family 19h it is 5 to 10 % for a
// left operand in rows, and nothing for a transposed one. Who multiplies
// depends on the processor and on the operands' layout alone, so that runs
// repeat.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace lockstep::kernels {

/// How exact a float32 product has to be.
enum class Sums { kInBlocks, kInOneChain };

/// a x b, or a x b + bias, rounded once; not by autocast, without a gradient.
/// Shape: `a` [rows, inner] and `b` [inner, columns] of one type, float32 or
/// bfloat16, with any strides; `bias` [columns], or undefined.
at::Tensor matrix_product(
    const at::Tensor& a,
    const at::Tensor& b,
    Sums sums,
    const at::Tensor& bias = {});

/// How LibTorch is asked to round the factors of float32 on the CPU: of
/// products (setFloat32MatmulPrecision), then of convolutions. As LibTorch
/// numbers it.
std::array<std::int64_t, 2> float32_precisions();

/// False if products round the factors, and not as convolutions do: then a
/// convolution is to be no product.
bool products_are_as_precise();

namespace internal {

/// Whose float32 products are faster.
enum class Multiplier { kMm, kInnerProductForRows, kInnerProduct };

/// On a processor of which cpuid says this.
Multiplier multiplier_for(bool is_amd, unsigned family, bool has_avx512);

/// oneDNN's inner product, asked for directly. False where LibTorch lacks it.
bool has_inner_product();
at::Tensor
inner_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias);

} // namespace internal
} // namespace lockstep::kernels
