// SPDX-License-Identifier: BSD-3-Clause
//
// Batch normalisation in place of LibTorch's, on the CPU and on CUDA devices,
// with what follows it in the same passes through memory:
//   out = kernels::batch_norm_relu(bn1, conv1->forward(x));
//   out = kernels::batch_norm_add_relu(bn2, out, [&] { return x; });
// compute what `relu(bn1(...))` and `relu(bn2(out) + x)` do. Until `install`
// with `batch_norm` (install.h) they are LibTorch's operations, one by one.
//
// Note [Batch norm in autograd]
// A layer's forward ends in aten::_batch_norm_impl_index, which chooses between
// libraries and has no formula of its own for gradients: the operations that it
// calls do. Ours takes its place, also for layers of other programs, with one
// node for normalisation, addition and ReLU; what it cannot do it hands on.
// What follows a layer is asked for in the thread (`Following`) around the
// layer's own forward: counters, momenta and errors stay LibTorch's, and so
// does a layer whose statistics are those of all ranks, which never gets here.
#pragma once

#include <utility>

#include <ATen/core/Tensor.h>

namespace lockstep::kernels {

/// Whether they are ours from now on. Threads: the first call with true while
/// no other thread normalises a batch; else any.
void use_batch_norms(bool are_ours);
bool are_batch_norms_ours();

/// What the next batch normalisation of this thread is to do as well.
class Following {
 public:
  /// A ReLU; before it `addend` is added, if defined.
  explicit Following(at::Tensor addend = {});
  ~Following();
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;

  /// `normalised`, after what is still to be done.
  at::Tensor complete(at::Tensor normalised) const;

  /// That of this thread, from now on somebody else's task; null if none.
  static Following* take();
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
  const Following relu;
  return relu.complete(layer->forward(x));
}

/// relu(layer(x) + addend()). Threads: as `layer->forward`.
template <class Layer, class Addend>
at::Tensor
batch_norm_add_relu(Layer& layer, const at::Tensor& x, Addend addend) {
  if (!are_batch_norms_ours()) { // in the order in which models are written
    at::Tensor y = layer->forward(x);
    y += addend();
    return y.relu_();
  }
  const Following relu(addend());
  return relu.complete(layer->forward(x));
}

} // namespace lockstep::kernels
