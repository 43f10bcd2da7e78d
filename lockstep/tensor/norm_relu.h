// SPDX-License-Identifier: BSD-3-Clause
//
// Batch normalisation with what follows it:
//   out = batch_norm_relu(bn1, conv1->forward(x));
//   out = batch_norm_add_relu(bn2, out, [&] { return x; });
// compute what `relu(bn1(...))` and `relu(bn2(out) + x)` do. With batch norms
// of Lockstep's own (kernels/install.h) that is done in the same passes through
// memory; else these are LibTorch's operations, one by one.
//
// Note [What follows a norm]
// What follows a layer is asked for in the thread (`NormEpilogue`) around the
// layer's own forward: counters, momenta and errors stay LibTorch's. A kernel
// that does it takes the task and says so; nobody else needs to know of it.
#pragma once

#include <utility>

#include <ATen/core/Tensor.h>

#pragma GCC visibility push(default)
namespace lockstep {

/// Whether the process's batch norms take what follows them. Threads: any.
bool norms_take_epilogues();
void set_norms_take_epilogues(bool are_taken);

/// What the next batch normalisation of this thread is to do as well.
class NormEpilogue {
 public:
  /// A ReLU; before it `addend` is added, if defined.
  explicit NormEpilogue(at::Tensor addend = {});
  ~NormEpilogue();
  NormEpilogue(const NormEpilogue&) = delete;
  NormEpilogue& operator=(const NormEpilogue&) = delete;

  /// `normalised`, after what is still to be done.
  at::Tensor complete(at::Tensor normalised) const;

  /// That of this thread, from now on somebody else's task; null if none.
  static NormEpilogue* take();
  [[nodiscard]] const at::Tensor& addend() const {
    return addend_;
  }
  void set_done() {
    is_done_ = true;
  }

 private:
  at::Tensor addend_;
  bool is_done_ = false;
};

/// relu(layer(x)). `layer`: a torch::nn::BatchNorm1d, 2d or 3d, in any mode.
/// Threads: as `layer->forward`.
template <class Layer>
at::Tensor batch_norm_relu(Layer& layer, const at::Tensor& x) {
  const NormEpilogue relu;
  return relu.complete(layer->forward(x));
}

/// relu(layer(x) + addend()). Threads: as `layer->forward`.
template <class Layer, class Addend>
at::Tensor
batch_norm_add_relu(Layer& layer, const at::Tensor& x, Addend addend) {
  if (!norms_take_epilogues()) { // in the order in which models are written
    at::Tensor y = layer->forward(x);
    y += addend();
    return y.relu_();
  }
  const NormEpilogue relu(addend());
  return relu.complete(layer->forward(x));
}

} // namespace lockstep
#pragma GCC visibility pop
