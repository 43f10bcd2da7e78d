// SPDX-License-Identifier: BSD-3-Clause
#include "tests/user/stock_rows.h"

namespace lockstep::test {
namespace {

namespace nn = torch::nn;

// A module of a class that is made from one argument.
template <class Holder, class... Args>
void one(StockRows& rows, const torch::Tensor& input, Args... args) {
  add<Holder>(rows, [args...] { return Holder(args...); }, {input});
}

void add_convolutions(StockRows& rows) {
  one<nn::Conv1d>(rows, x({4, 2, 5}), 2, 3, 3);
  one<nn::Conv2d>(rows, x({4, 2, 5, 5}), 2, 3, 3);
  one<nn::Conv3d>(rows, x({4, 2, 4, 4, 4}), 2, 3, 3);
  one<nn::ConvTranspose1d>(rows, x({4, 2, 5}), 2, 3, 3);
  one<nn::ConvTranspose2d>(rows, x({4, 2, 4, 4}), 2, 3, 3);
  one<nn::ConvTranspose3d>(rows, x({4, 2, 3, 3, 3}), 2, 3, 3);
  one<nn::PixelShuffle>(rows, x({4, 4, 3, 3}), 2);
  one<nn::PixelUnshuffle>(rows, x({4, 1, 4, 4}), 2);
  one<nn::Fold>(rows, x({4, 12, 4}), nn::FoldOptions({3, 3}, {2, 2}));
  one<nn::Unfold>(rows, x({4, 2, 4, 4}), 2);
  add<nn::Upsample>(
      rows,
      [] {
        return nn::Upsample(
            nn::UpsampleOptions().scale_factor(std::vector{2.0}));
      },
      {x({4, 2, 3})});
}

void add_activations(StockRows& rows) {
  const auto in = x({4, 6});
  one<nn::ELU>(rows, in);
  one<nn::SELU>(rows, in);
  one<nn::Hardshrink>(rows, in);
  one<nn::Hardtanh>(rows, in);
  one<nn::LeakyReLU>(rows, in);
  one<nn::LogSigmoid>(rows, in);
  one<nn::Softmax>(rows, in, 1);
  one<nn::Softmin>(rows, in, 1);
  one<nn::LogSoftmax>(rows, in, 1);
  one<nn::Softmax2d>(rows, x({4, 3, 2, 2}));
  one<nn::PReLU>(rows, in);
  one<nn::ReLU>(rows, in);
  one<nn::ReLU6>(rows, in);
  one<nn::CELU>(rows, in);
  one<nn::GLU>(rows, in);
  one<nn::GELU>(rows, in);
  one<nn::SiLU>(rows, in);
  one<nn::Mish>(rows, in);
  one<nn::Sigmoid>(rows, in);
  one<nn::Softplus>(rows, in);
  one<nn::Softshrink>(rows, in);
  one<nn::Softsign>(rows, in);
  one<nn::Tanh>(rows, in);
  one<nn::Tanhshrink>(rows, in);
  one<nn::Threshold>(rows, in, 0.1, 0.2);
  add<nn::RReLU>(
      rows,
      [] { return nn::RReLU(); },
      {in},
      {.against = Against::kScaled});
}

void add_norms(StockRows& rows) {
  const StockTraits shards{.against = Against::kShards};
  const auto batch = [&rows, &shards]<class Holder>(const torch::Tensor& in) {
    add<Holder>(
        rows,
        [] { return Holder(3); },
        {in},
        shards);
  };
  batch.operator()<nn::BatchNorm1d>(x({4, 3}));
  batch.operator()<nn::BatchNorm2d>(x({4, 3, 2, 2}));
  batch.operator()<nn::BatchNorm3d>(x({4, 3, 2, 2, 2}));
  const auto instance = [&rows, &shards]<class Holder, class O>(
                            const torch::Tensor& in,
                            const O& options) {
    add<Holder>(
        rows,
        [options] { return Holder(options); },
        {in},
        shards);
  };
  instance.operator()<nn::InstanceNorm1d>(
      x({4, 3, 5}),
      nn::InstanceNorm1dOptions(3).affine(true).track_running_stats(true));
  instance.operator()<nn::InstanceNorm2d>(
      x({4, 3, 2, 2}),
      nn::InstanceNorm2dOptions(3).affine(true).track_running_stats(true));
  instance.operator()<nn::InstanceNorm3d>(
      x({4, 3, 2, 2, 2}),
      nn::InstanceNorm3dOptions(3).affine(true).track_running_stats(true));
  one<nn::LayerNorm>(rows, x({4, 3}), nn::LayerNormOptions({3}));
  one<nn::LocalResponseNorm>(rows, x({4, 4, 3}), 2);
  one<nn::CrossMapLRN2d>(rows, x({4, 4, 3, 3}), 3);
  one<nn::GroupNorm>(rows, x({4, 4, 3}), 2, 4);
}

void add_pools(StockRows& rows) {
  const auto d1 = x({4, 2, 6});
  const auto d2 = x({4, 2, 6, 6});
  const auto d3 = x({4, 2, 6, 6, 6});
  one<nn::AvgPool1d>(rows, d1, 2);
  one<nn::AvgPool2d>(rows, d2, 2);
  one<nn::AvgPool3d>(rows, d3, 2);
  one<nn::MaxPool1d>(rows, d1, 2);
  one<nn::MaxPool2d>(rows, d2, 2);
  one<nn::MaxPool3d>(rows, d3, 2);
  one<nn::AdaptiveMaxPool1d>(rows, d1, 2);
  one<nn::AdaptiveMaxPool2d>(rows, d2, 2);
  one<nn::AdaptiveMaxPool3d>(rows, d3, 2);
  one<nn::AdaptiveAvgPool1d>(rows, d1, 2);
  one<nn::AdaptiveAvgPool2d>(rows, d2, 2);
  one<nn::AdaptiveAvgPool3d>(rows, d3, 2);
  one<nn::LPPool1d>(rows, d1, nn::LPPool1dOptions(2, 2));
  one<nn::LPPool2d>(rows, d2, nn::LPPool2dOptions(2, 2));
  one<nn::LPPool3d>(rows, d3, nn::LPPool3dOptions(2, 2));
  const auto places = torch::arange(3).mul(2);
  add<nn::MaxUnpool1d, 2>(
      rows,
      [] { return nn::MaxUnpool1d(2); },
      {x({4, 2, 3}), places.expand({4, 2, 3}).contiguous()});
  add<nn::MaxUnpool2d, 2>(
      rows,
      [] { return nn::MaxUnpool2d(2); },
      {x({4, 2, 1, 3}), places.expand({4, 2, 1, 3}).contiguous()});
  add<nn::MaxUnpool3d, 2>(
      rows,
      [] { return nn::MaxUnpool3d(2); },
      {x({4, 2, 1, 1, 3}), places.expand({4, 2, 1, 1, 3}).contiguous()});
  const StockTraits scaled{.against = Against::kScaledAlways};
  add<nn::FractionalMaxPool2d>(
      rows,
      [] {
        return nn::FractionalMaxPool2d(
            nn::FractionalMaxPool2dOptions(2).output_size(3));
      },
      {d2},
      scaled);
  add<nn::FractionalMaxPool3d>(
      rows,
      [] {
        return nn::FractionalMaxPool3d(
            nn::FractionalMaxPool3dOptions(2).output_size(3));
      },
      {d3},
      scaled);
}

void add_dropouts(StockRows& rows) {
  const StockTraits scaled{.against = Against::kScaled};
  add<nn::Dropout>(
      rows,
      [] { return nn::Dropout(); },
      {x({4, 6})},
      scaled);
  const auto in = x({4, 3, 2, 2});
  add<nn::Dropout2d>(
      rows,
      [] { return nn::Dropout2d(); },
      {in},
      scaled);
  const auto deep = x({4, 3, 2, 2, 2});
  add<nn::Dropout3d>(
      rows,
      [] { return nn::Dropout3d(); },
      {deep},
      scaled);
  const StockTraits two{.against = Against::kTwoValues};
  add<nn::AlphaDropout>(
      rows,
      [] { return nn::AlphaDropout(); },
      {in},
      two);
  add<nn::FeatureAlphaDropout>(
      rows,
      [] { return nn::FeatureAlphaDropout(); },
      {in},
      two);
}

void add_pads(StockRows& rows) {
  const auto d1 = x({4, 2, 3});
  const auto d2 = x({4, 2, 3, 3});
  const auto d3 = x({4, 2, 3, 3, 3});
  one<nn::ReflectionPad1d>(rows, d1, 1);
  one<nn::ReflectionPad2d>(rows, d2, 1);
  one<nn::ReflectionPad3d>(rows, d3, 1);
  one<nn::ReplicationPad1d>(rows, d1, 1);
  one<nn::ReplicationPad2d>(rows, d2, 1);
  one<nn::ReplicationPad3d>(rows, d3, 1);
  one<nn::ZeroPad1d>(rows, d1, 1);
  one<nn::ZeroPad2d>(rows, d2, 1);
  one<nn::ZeroPad3d>(rows, d3, 1);
  one<nn::ConstantPad1d>(rows, d1, 1, 0.5);
  one<nn::ConstantPad2d>(rows, d2, 1, 0.5);
  one<nn::ConstantPad3d>(rows, d3, 1, 0.5);
}

void add_linears(StockRows& rows) {
  one<nn::Identity>(rows, x({4, 3}));
  one<nn::Linear>(rows, x({4, 3}), 3, 2);
  one<nn::Flatten>(rows, x({4, 3, 2}));
  one<nn::Unflatten>(
      rows,
      x({4, 6}),
      nn::UnflattenOptions(1, std::vector<std::int64_t>{2, 3}));
  const StockTraits both{.with_gradient = 2};
  add<nn::Bilinear, 2>(
      rows,
      [] { return nn::Bilinear(3, 4, 2); },
      {x({4, 3}), x({4, 4})},
      both);
  add<nn::CosineSimilarity, 2>(
      rows,
      [] { return nn::CosineSimilarity(); },
      {x({4, 3}), x({4, 3})},
      both);
  add<nn::PairwiseDistance, 2>(
      rows,
      [] { return nn::PairwiseDistance(); },
      {x({4, 3}), x({4, 3})},
      both);
}

} // namespace

void add_stock_layers(StockRows& rows) {
  add_convolutions(rows);
  add_activations(rows);
  add_norms(rows);
  add_pools(rows);
  add_dropouts(rows);
  add_pads(rows);
  add_linears(rows);
}

} // namespace lockstep::test
