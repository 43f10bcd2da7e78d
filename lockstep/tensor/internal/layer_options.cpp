// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/layer_options.h"

#include <functional>
#include <utility>
#include <variant>

#include <torch/nn/modules.h>

#include "lockstep/tensor/internal/functional_target.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

bool is_function(const nn::activation_t& activation) {
  return std::holds_alternative<std::function<at::Tensor(const at::Tensor&)>>(
      activation);
}

template <class Options>
void keep_own(Options& options, Options& own) {
  if constexpr (requires { options.weight(own.weight()); }) {
    options.weight(own.weight());
  }
  if constexpr (requires { options.pos_weight(own.pos_weight()); }) {
    options.pos_weight(own.pos_weight());
  }
  if constexpr (requires { options._weight(own._weight()); }) {
    options._weight(own._weight());
  }
  if constexpr (requires { options._random_samples(own._random_samples()); }) {
    options._random_samples(own._random_samples());
  }
  if constexpr (requires { options.distance_function(); }) {
    options.distance_function(own.distance_function());
  }
  if constexpr (requires { is_function(options.activation()); }) {
    if (is_function(options.activation()) || is_function(own.activation())) {
      options.activation(own.activation());
    }
  }
}

template <class Layer>
bool copy(const nn::Module& from, nn::Module& to) {
  const auto* ours = dynamic_cast<const Layer*>(&from);
  auto* theirs = dynamic_cast<Layer*>(&to);
  if (ours == nullptr || theirs == nullptr) {
    return false;
  }
  auto options = ours->options;
  keep_own(options, theirs->options);
  theirs->options = std::move(options);
  if constexpr (requires { theirs->options_base; }) { // what forward looks at
    theirs->options_base = ours->options_base;
  }
  return true;
}

template <class... Layers>
bool copy_any(const nn::Module& from, nn::Module& to) {
  return (copy<Layers>(from, to) || ...);
}

// clang-format off
constexpr auto kCopy = copy_any<
    nn::Conv1dImpl, nn::Conv2dImpl, nn::Conv3dImpl, nn::ConvTranspose1dImpl,
    nn::ConvTranspose2dImpl, nn::ConvTranspose3dImpl, nn::PixelShuffleImpl,
    nn::PixelUnshuffleImpl, nn::FoldImpl, nn::UnfoldImpl, nn::UpsampleImpl,
    nn::LinearImpl, nn::BilinearImpl, nn::FlattenImpl, nn::UnflattenImpl,
    nn::EmbeddingImpl, nn::EmbeddingBagImpl,
    // Activations.
    nn::ELUImpl, nn::SELUImpl, nn::HardshrinkImpl, nn::HardtanhImpl,
    nn::LeakyReLUImpl, nn::SoftmaxImpl, nn::SoftminImpl, nn::LogSoftmaxImpl,
    nn::PReLUImpl, nn::ReLUImpl, nn::ReLU6Impl, nn::RReLUImpl, nn::CELUImpl,
    nn::GLUImpl, nn::GELUImpl, nn::SoftplusImpl, nn::SoftshrinkImpl,
    nn::ThresholdImpl, nn::MultiheadAttentionImpl,
    // Norms and dropout.
    nn::BatchNorm1dImpl, nn::BatchNorm2dImpl, nn::BatchNorm3dImpl,
    nn::InstanceNorm1dImpl, nn::InstanceNorm2dImpl, nn::InstanceNorm3dImpl,
    nn::LayerNormImpl, nn::GroupNormImpl, nn::LocalResponseNormImpl,
    nn::CrossMapLRN2dImpl, nn::DropoutImpl, nn::Dropout2dImpl,
    nn::Dropout3dImpl, nn::AlphaDropoutImpl, nn::FeatureAlphaDropoutImpl,
    // Pools and padding.
    nn::AvgPool1dImpl, nn::AvgPool2dImpl, nn::AvgPool3dImpl, nn::MaxPool1dImpl,
    nn::MaxPool2dImpl, nn::MaxPool3dImpl, nn::AdaptiveAvgPool1dImpl,
    nn::AdaptiveAvgPool2dImpl, nn::AdaptiveAvgPool3dImpl,
    nn::AdaptiveMaxPool1dImpl, nn::AdaptiveMaxPool2dImpl,
    nn::AdaptiveMaxPool3dImpl, nn::MaxUnpool1dImpl, nn::MaxUnpool2dImpl,
    nn::MaxUnpool3dImpl, nn::FractionalMaxPool2dImpl,
    nn::FractionalMaxPool3dImpl, nn::LPPool1dImpl, nn::LPPool2dImpl,
    nn::LPPool3dImpl, nn::ReflectionPad1dImpl, nn::ReflectionPad2dImpl,
    nn::ReflectionPad3dImpl, nn::ReplicationPad1dImpl,
    nn::ReplicationPad2dImpl, nn::ReplicationPad3dImpl, nn::ZeroPad1dImpl,
    nn::ZeroPad2dImpl, nn::ZeroPad3dImpl, nn::ConstantPad1dImpl,
    nn::ConstantPad2dImpl, nn::ConstantPad3dImpl,
    // Recurrent layers and those of transformers.
    nn::RNNImpl, nn::LSTMImpl, nn::GRUImpl, nn::RNNCellImpl, nn::LSTMCellImpl,
    nn::GRUCellImpl, nn::TransformerEncoderLayerImpl,
    nn::TransformerDecoderLayerImpl,
    // Distances and losses.
    nn::CosineSimilarityImpl, nn::PairwiseDistanceImpl, nn::L1LossImpl,
    nn::KLDivLossImpl, nn::MSELossImpl, nn::BCELossImpl,
    nn::HingeEmbeddingLossImpl, nn::MultiMarginLossImpl,
    nn::CosineEmbeddingLossImpl, nn::SmoothL1LossImpl, nn::HuberLossImpl,
    nn::MultiLabelMarginLossImpl, nn::SoftMarginLossImpl,
    nn::MultiLabelSoftMarginLossImpl, nn::TripletMarginLossImpl,
    nn::TripletMarginWithDistanceLossImpl, nn::CTCLossImpl,
    nn::PoissonNLLLossImpl, nn::MarginRankingLossImpl, nn::NLLLossImpl,
    nn::CrossEntropyLossImpl, nn::BCEWithLogitsLossImpl,
    nn::AdaptiveLogSoftmaxWithLossImpl>;
// clang-format on

} // namespace

bool copy_options(const nn::Module& from, nn::Module& to) {
  return kCopy(from, to);
}

bool may_call_same(const nn::Module& a, const nn::Module& b) {
  const auto* first = dynamic_cast<const nn::FunctionalImpl*>(&a);
  const auto* second = dynamic_cast<const nn::FunctionalImpl*>(&b);
  if (first == nullptr || second == nullptr) {
    return true;
  }
  const auto& f = function_of(*first);
  const auto& g = function_of(*second);
  const auto has_same = [&]<class Pointer>() {
    const auto* x = f.template target<Pointer>();
    const auto* y = g.template target<Pointer>();
    return x == nullptr || y == nullptr || *x == *y;
  };
  return f.target_type() == g.target_type() &&
         has_same.template operator()<at::Tensor (*)(const at::Tensor&)>() &&
         has_same.template operator()<at::Tensor (*)(at::Tensor)>();
}

} // namespace lockstep
