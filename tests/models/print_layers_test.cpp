// SPDX-License-Identifier: BSD-3-Clause
//
// Every layer of LibTorch as Python prints it: models_zoo.py makes the same
// layers, in the same order, and fails if its LibTorch has one more.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/tensor/modules.h"
#include "tests/support/python.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

struct Net : nn::Module {
  Net() {
    const auto twin = [] { return nn::Sequential(nn::ReLU(), nn::ReLU()); };
    register_module(
        "list",
        nn::ModuleList(nn::ReLU(), nn::ReLU(), nn::Linear(2, 3), nn::ReLU()));
    register_module("empty", nn::Sequential());
    register_module("none", nn::ModuleList());
    register_module("twice", nn::ModuleList(twin(), twin()));
  }
};

template <class... Holders>
std::string lines(const Holders&... modules) {
  return ((to_string(*modules) + "\n") + ...);
}

std::string convolutions() {
  return lines(
      nn::Conv1d(1, 2, 3),
      nn::Conv2d(1, 20, 5),
      nn::Conv2d(nn::Conv2dOptions(4, 8, {3, 5})
                     .stride({1, 2})
                     .padding({1, 0})
                     .dilation({2, 1})
                     .groups(2)
                     .bias(false)
                     .padding_mode(torch::kReflect)),
      nn::Conv2d(nn::Conv2dOptions(1, 2, 3).padding(torch::kSame)),
      nn::Conv3d(nn::Conv3dOptions(1, 2, 3).stride(2)),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(2, 4, 3)
                              .stride(2)
                              .padding(1)
                              .output_padding(1)
                              .bias(false)),
      nn::Linear(3, 5),
      nn::Linear(nn::LinearOptions(3, 5).bias(false)));
}

std::string norms() {
  return lines(
      nn::BatchNorm1d(3),
      nn::BatchNorm2d(64),
      nn::BatchNorm2d(nn::BatchNormOptions(4)
                          .eps(1e-3)
                          .momentum(std::nullopt)
                          .affine(false)
                          .track_running_stats(false)),
      nn::BatchNorm3d(nn::BatchNormOptions(2).momentum(0.25)),
      nn::InstanceNorm2d(4),
      nn::GroupNorm(2, 4),
      nn::LayerNorm(nn::LayerNormOptions({8})),
      nn::LayerNorm(
          nn::LayerNormOptions({4, 8}).eps(1e-6).elementwise_affine(false)));
}

std::string activations() {
  return lines(
      nn::ReLU(),
      nn::ReLU(nn::ReLUOptions(true)),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true)),
      nn::Sigmoid(),
      nn::Tanh(),
      nn::GELU(),
      nn::SiLU(),
      nn::Softmax(1),
      nn::LogSoftmax(-1),
      nn::Dropout(),
      nn::Dropout(nn::DropoutOptions(0.25).inplace(true)),
      nn::Dropout2d(0.1));
}

std::string pools() {
  return lines(
      nn::MaxPool1d(2),
      nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(2)),
      nn::MaxPool2d(
          nn::MaxPool2dOptions({3, 2}).stride({2, 1}).padding({1, 0}).ceil_mode(
              true)),
      nn::AvgPool2d(2),
      nn::AdaptiveAvgPool1d(1),
      nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({7, 7})),
      nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({std::nullopt, 3})),
      nn::AdaptiveMaxPool2d(nn::AdaptiveMaxPool2dOptions({2, 2})),
      nn::Flatten(),
      nn::Identity(),
      nn::Embedding(10, 3),
      nn::Embedding(nn::EmbeddingOptions(10, 3).padding_idx(1)),
      nn::CrossEntropyLoss(),
      nn::MSELoss(),
      nn::Sequential(nn::Linear(1, 2), nn::ReLU()),
      std::make_shared<Net>());
}

std::string more_activations() {
  return lines(
      nn::ReLU6(),
      nn::ReLU6(nn::ReLU6Options(true)),
      nn::SELU(),
      nn::ELU(),
      nn::ELU(nn::ELUOptions().alpha(0.5).inplace(true)),
      nn::CELU(nn::CELUOptions().alpha(2.5)),
      nn::RReLU(),
      nn::RReLU(nn::RReLUOptions().lower(0.1).upper(0.3).inplace(true)),
      nn::Hardtanh(),
      nn::Hardtanh(nn::HardtanhOptions().max_val(6.5).inplace(true)),
      nn::Threshold(0.5, 20.25),
      nn::Threshold(nn::ThresholdOptions(0.1, 0.2).inplace(true)),
      nn::Softplus(),
      nn::Softplus(nn::SoftplusOptions().beta(0.5).threshold(8.5)),
      nn::Softshrink(),
      nn::Hardshrink(0.25),
      nn::PReLU(),
      nn::PReLU(nn::PReLUOptions().num_parameters(8)),
      nn::GELU(nn::GELUOptions().approximate("tanh")),
      nn::GLU(),
      nn::Softmin(1),
      nn::Softmax2d(),
      nn::Softsign(),
      nn::LogSigmoid(),
      nn::Tanhshrink(),
      nn::Mish(),
      nn::Dropout3d(0.3),
      nn::AlphaDropout(0.2),
      nn::FeatureAlphaDropout());
}

std::string more_pools() {
  return lines(
      nn::MaxPool3d(nn::MaxPool3dOptions({2, 2, 1}).dilation({1, 2, 1})),
      nn::AvgPool1d(3),
      nn::AvgPool2d(nn::AvgPool2dOptions({3, 2}).stride({2, 1}).padding(1)),
      nn::AvgPool3d(2),
      nn::MaxUnpool1d(3),
      nn::MaxUnpool2d(nn::MaxUnpool2dOptions(3).stride(2).padding(1)),
      nn::MaxUnpool3d(2),
      nn::LPPool1d(nn::LPPool1dOptions(1.5, 3).stride(2)),
      nn::LPPool2d(nn::LPPool2dOptions(2.5, {3, 2}).stride({1, 2})),
      nn::LPPool3d(nn::LPPool3dOptions(1.5, 2).stride(2).ceil_mode(true)),
      nn::AdaptiveMaxPool1d(4),
      nn::AdaptiveAvgPool3d(nn::AdaptiveAvgPool3dOptions({1, std::nullopt, 2})),
      nn::AdaptiveMaxPool3d(nn::AdaptiveMaxPool3dOptions({2, 3, 4})),
      nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(3).output_size(2)),
      nn::FractionalMaxPool3d(
          nn::FractionalMaxPool3dOptions(3).output_ratio(0.5)));
}

std::string shapes() {
  return lines(
      nn::ReflectionPad1d(2),
      nn::ReflectionPad2d(nn::ReflectionPad2dOptions({1, 2, 3, 4})),
      nn::ReflectionPad3d(1),
      nn::ReplicationPad1d(2),
      nn::ReplicationPad2d(1),
      nn::ReplicationPad3d(1),
      nn::ZeroPad1d(3),
      nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 0, 2, 0})),
      nn::ZeroPad3d(1),
      nn::ConstantPad1d(1, 2.5),
      nn::ConstantPad2d(nn::ConstantPad2dOptions({1, 0, 2, 0}, -0.5)),
      nn::ConstantPad3d(1, 0.125),
      nn::Unflatten(nn::UnflattenOptions(1, {2, 3})),
      nn::Fold(nn::FoldOptions({4, 5}, {2, 2}).padding(1)),
      nn::Unfold(nn::UnfoldOptions({2, 3}).stride(2).dilation({1, 2})),
      nn::Upsample(nn::UpsampleOptions().scale_factor({{2, 2}})),
      nn::Upsample(nn::UpsampleOptions()
                       .scale_factor({{1.5, 2}})
                       .mode(torch::kBilinear)),
      nn::Upsample(nn::UpsampleOptions().size({{4, 6}})),
      nn::Upsample(nn::UpsampleOptions()),
      nn::PixelShuffle(3),
      nn::PixelUnshuffle(2));
}

std::string weighted() {
  return lines(
      nn::ConvTranspose1d(2, 4, 3),
      nn::ConvTranspose3d(2, 4, 3),
      nn::Conv2d(nn::Conv2dOptions(1, 2, 3).padding(torch::kValid)),
      nn::Conv2d(
          nn::Conv2dOptions(1, 2, 3).padding(1).padding_mode(torch::kCircular)),
      nn::Bilinear(nn::BilinearOptions(2, 3, 4).bias(false)),
      nn::InstanceNorm1d(2),
      nn::InstanceNorm3d(nn::InstanceNorm3dOptions(2).affine(true)),
      nn::LocalResponseNorm(2),
      nn::CrossMapLRN2d(3),
      nn::Embedding(nn::EmbeddingOptions(10, 3)
                        .max_norm(1.5)
                        .norm_type(1)
                        .scale_grad_by_freq(true)
                        .sparse(true)),
      nn::EmbeddingBag(10, 3),
      nn::EmbeddingBag(nn::EmbeddingBagOptions(10, 3)
                           .max_norm(1.5)
                           .mode(torch::kSum)
                           .padding_idx(1)));
}

std::string recurrent() {
  return lines(
      nn::RNN(3, 5),
      nn::RNN(nn::RNNOptions(3, 5).nonlinearity(torch::kReLU)),
      nn::LSTM(nn::LSTMOptions(3, 5)
                   .num_layers(2)
                   .bias(false)
                   .batch_first(true)
                   .dropout(0.25)
                   .bidirectional(true)
                   .proj_size(2)),
      nn::GRU(nn::GRUOptions(3, 5).num_layers(2)),
      nn::RNNCell(nn::RNNCellOptions(3, 5).nonlinearity(torch::kReLU)),
      nn::LSTMCell(3, 5),
      nn::GRUCell(nn::GRUCellOptions(3, 5).bias(false)),
      nn::MultiheadAttention(8, 2),
      nn::TransformerEncoder(nn::TransformerEncoderOptions(
          nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16),
          2)),
      nn::TransformerDecoder(nn::TransformerDecoderOptions(
          nn::TransformerDecoderLayerOptions(8, 2).dropout(0.25),
          1)),
      nn::Transformer(nn::TransformerOptions(8, 2)
                          .num_encoder_layers(1)
                          .num_decoder_layers(2)
                          .dim_feedforward(16)));
}

std::string losses() {
  const auto weight = torch::ones({3});
  return lines(
      nn::L1Loss(),
      nn::KLDivLoss(),
      nn::BCELoss(nn::BCELossOptions().weight(weight)),
      nn::BCEWithLogitsLoss(),
      nn::NLLLoss(),
      nn::CTCLoss(),
      nn::HingeEmbeddingLoss(),
      nn::HuberLoss(),
      nn::SmoothL1Loss(),
      nn::SoftMarginLoss(),
      nn::MarginRankingLoss(),
      nn::MultiLabelMarginLoss(),
      nn::MultiLabelSoftMarginLoss(),
      nn::MultiMarginLoss(),
      nn::PoissonNLLLoss(),
      nn::CosineEmbeddingLoss(),
      nn::TripletMarginLoss(),
      nn::TripletMarginWithDistanceLoss(),
      nn::TripletMarginWithDistanceLoss(
          nn::TripletMarginWithDistanceLossOptions().distance_function(
              [](const torch::Tensor& a, const torch::Tensor& b) {
                return a - b;
              })),
      nn::AdaptiveLogSoftmaxWithLoss(
          nn::AdaptiveLogSoftmaxWithLossOptions(16, 20, {5, 10})),
      nn::CosineSimilarity(),
      nn::PairwiseDistance());
}

std::string containers() {
  const std::vector<torch::Tensor> tensors{
      torch::zeros({2, 3}),
      torch::zeros({}, torch::kBFloat16)};
  nn::ModuleDict dict;
  dict->update(std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{
      {"a", nn::ReLU().ptr()},
      {"b", nn::Linear(1, 2).ptr()}});
  nn::ParameterDict parameters;
  parameters->insert("w", tensors[0]);
  parameters->insert("long_name", torch::zeros({4}, torch::kDouble));
  nn::ParameterList one;
  one->append(tensors[0]);
  nn::ParameterList two;
  two->append(tensors[0]);
  two->append(tensors[1]);
  return lines(
      dict,
      parameters,
      one,
      two,
      nn::ModuleList(two.ptr(), nn::ReLU().ptr()),
      nn::ModuleDict(),
      nn::ParameterDict(),
      nn::ParameterList());
}

TEST(Print, ShowsEveryLayerOfLibTorchAsPython) {
  EXPECT_EQ(
      convolutions() + norms() + activations() + pools() + more_activations() +
          more_pools() + shapes() + weighted() + recurrent() + losses() +
          containers(),
      test::run_python("models_zoo.py"));
}

} // namespace
} // namespace lockstep
