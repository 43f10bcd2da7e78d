// SPDX-License-Identifier: BSD-3-Clause
#include "tests/user/stock_rows.h"

namespace lockstep::test {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

Tensor signs(torch::IntArrayRef sizes) {
  return whole(sizes, 2).mul(2).sub(1).to(torch::kFloat);
}
Tensor hits(torch::IntArrayRef sizes) {
  return whole(sizes, 2).to(torch::kFloat);
}

// One value per sample, so that those of shards can be joined.
template <class Holder, std::size_t N, class Options>
void loss(
    StockRows& rows,
    const Options& options,
    Tensors inputs,
    StockTraits traits = {}) {
  Options each = options;
  each.reduction(torch::kNone);
  add<Holder, N>(
      rows,
      [each] { return Holder(each); },
      std::move(inputs),
      std::move(traits));
}

void add_plain(StockRows& rows) {
  const auto in = x({4, 3});
  const auto target = x({4, 3});
  loss<nn::L1Loss, 2>(rows, nn::L1LossOptions(), {in, target});
  loss<nn::MSELoss, 2>(rows, nn::MSELossOptions(), {in, target});
  loss<nn::SmoothL1Loss, 2>(rows, nn::SmoothL1LossOptions(), {in, target});
  loss<nn::HuberLoss, 2>(rows, nn::HuberLossOptions(), {in, target});
  loss<nn::PoissonNLLLoss, 2>(
      rows,
      nn::PoissonNLLLossOptions(),
      {in, target.abs()});
  loss<nn::KLDivLoss, 2>(
      rows,
      nn::KLDivLossOptions(),
      {in.log_softmax(1), target.softmax(1)});
  loss<nn::HingeEmbeddingLoss, 2>(
      rows,
      nn::HingeEmbeddingLossOptions(),
      {in, signs({4, 3})});
  loss<nn::SoftMarginLoss, 2>(
      rows,
      nn::SoftMarginLossOptions(),
      {in, signs({4, 3})});
  loss<nn::MultiLabelMarginLoss, 2>(
      rows,
      nn::MultiLabelMarginLossOptions(),
      {in, torch::tensor({1, -1, 0}).expand({4, 3}).contiguous()});
  loss<nn::MarginRankingLoss, 3>(
      rows,
      nn::MarginRankingLossOptions(),
      {x({4}), x({4}), signs({4})},
      {.with_gradient = 2});
  loss<nn::CosineEmbeddingLoss, 3>(
      rows,
      nn::CosineEmbeddingLossOptions(),
      {in, target, signs({4})},
      {.with_gradient = 2});
  loss<nn::TripletMarginLoss, 3>(
      rows,
      nn::TripletMarginLossOptions(),
      {in, target, x({4, 3})},
      {.with_gradient = 3});
  loss<nn::TripletMarginWithDistanceLoss, 3>(
      rows,
      nn::TripletMarginWithDistanceLossOptions(),
      {in, target, x({4, 3})},
      {.with_gradient = 3});
}

// With and without the weights that they may be given.
void add_weighted(StockRows& rows) {
  const auto in = x({4, 3});
  const auto classes = whole({4}, 3);
  const auto weight = torch::tensor({0.5, 1.0, 2.0});
  const StockTraits given{.variant = "weight"};
  const auto both = [&]<class Holder, class Options>(
                        const Options& options,
                        const Tensors& inputs) {
    loss<Holder, 2>(rows, options, inputs);
    // Each module is given one of its own, once.
    loss<Holder, 2>(
        rows,
        Options(options).weight(weight.clone()),
        inputs,
        given);
  };
  both.operator()<nn::BCELoss>(
      nn::BCELossOptions(),
      {in.sigmoid(), hits({4, 3})});
  both.operator()<nn::BCEWithLogitsLoss>(
      nn::BCEWithLogitsLossOptions(),
      {in, hits({4, 3})});
  loss<nn::BCEWithLogitsLoss, 2>(
      rows,
      nn::BCEWithLogitsLossOptions()
          .weight(weight.clone())
          .pos_weight(weight.clone()),
      {in, hits({4, 3})},
      {.variant = "weight, pos_weight"});
  both.operator()<nn::NLLLoss>(
      nn::NLLLossOptions(),
      {in.log_softmax(1), classes});
  both.operator()<nn::CrossEntropyLoss>(
      nn::CrossEntropyLossOptions(),
      {in, classes});
  both.operator()<nn::MultiMarginLoss>(
      nn::MultiMarginLossOptions(),
      {in, classes});
  both.operator()<nn::MultiLabelSoftMarginLoss>(
      nn::MultiLabelSoftMarginLossOptions(),
      {in, hits({4, 3})});
}

} // namespace

void add_stock_losses(StockRows& rows) {
  add_plain(rows);
  add_weighted(rows);
  add<nn::AdaptiveLogSoftmaxWithLoss, 2>(
      rows,
      [] {
        return nn::AdaptiveLogSoftmaxWithLoss(
            nn::AdaptiveLogSoftmaxWithLossOptions(6, 6, {2, 4}).div_value(2.0));
      },
      {x({4, 6}), torch::tensor({0, 3, 5, 1})});
  loss<nn::CTCLoss, 4>(
      rows,
      nn::CTCLossOptions(),
      {x({4, 5, 3}).log_softmax(2),
       whole({4, 2}, 2).add(1),
       torch::full({4}, 5, torch::kLong),
       torch::full({4}, 2, torch::kLong)});
  // The batch is the second dimension of the first argument alone.
  rows.back().call = [](nn::Module& module, const Tensors& in) -> Tensors {
    return {module.as<nn::CTCLoss>()->forward(
        in.at(0).transpose(0, 1),
        in.at(1),
        in.at(2),
        in.at(3))};
  };
}

} // namespace lockstep::test
