// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/convolution_algorithm.h"

#include "lockstep/kernels/internal/convolution_tensors.h"

namespace lockstep::kernels {

bool ConvolutionAlgorithm::takes_gradient(const at::Tensor& grad_output) const {
  return is_a_batch(grad_output) &&
         grad_output.scalar_type() == weight_.scalar_type() &&
         grad_output.sizes() == at::IntArrayRef(output_sizes());
}

} // namespace lockstep::kernels
