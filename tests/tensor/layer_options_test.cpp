// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/layer_options.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h" // class_name
#include "tests/user/stock_rows.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

// They use their options in construction only.
bool makes_layers_of_options(const std::string& name) {
  return name == "Transformer" || name == "TransformerEncoder" ||
         name == "TransformerDecoder";
}

TEST(LayerOptions, OfEveryLayerOfLibTorchAreCopied) {
  test::StockRows rows;
  test::add_stock_layers(rows);
  test::add_stock_networks(rows);
  test::add_stock_losses(rows);
  for (const test::StockRow& row : rows) {
    const auto from = row.make();
    const auto to = row.make();
    const std::string name = class_name(*from);
    EXPECT_EQ(
        copy_options(*from, *to),
        row.has_options && !makes_layers_of_options(name))
        << name;
  }
}

TEST(LayerOptions, LeaveOtherLayersAsTheyAre) {
  nn::Dropout dropout(0.1);
  nn::Dropout2d other(0.2);
  EXPECT_FALSE(copy_options(*dropout, *other));
  EXPECT_EQ(other->options.p(), 0.2);
}

// The copy of a layer that is constructed again and changed afterwards.
template <class Layer, class... Args>
std::shared_ptr<Layer> copied(
    const std::function<void(Layer&)>& change,
    Args... args) {
  const auto make = [args...] { return std::make_shared<Layer>(args...); };
  const auto layer = make();
  change(*layer);
  const auto copy = copy_constructed_by(make, *layer);
  EXPECT_TRUE(copy) << "not built alike";
  return std::dynamic_pointer_cast<Layer>(copy->module);
}

TEST(LayerOptions, ThatTextsDoNotShowReachACopy) {
  const auto loss = copied<nn::CrossEntropyLossImpl>([](auto& layer) {
    layer.options.label_smoothing(0.1).ignore_index(2).reduction(torch::kSum);
  });
  EXPECT_EQ(loss->options.label_smoothing(), 0.1);
  EXPECT_EQ(loss->options.ignore_index(), 2);
  EXPECT_TRUE(
      std::holds_alternative<torch::enumtype::kSum>(loss->options.reduction()));
  const auto ctc = copied<nn::CTCLossImpl>(
      [](auto& layer) { layer.options.blank(3).zero_infinity(true); });
  EXPECT_EQ(ctc->options.blank(), 3);
  EXPECT_TRUE(ctc->options.zero_infinity());
  const auto attention = copied<nn::MultiheadAttentionImpl>(
      [](auto& layer) { layer.options.num_heads(4).dropout(0.5); },
      8,
      2);
  EXPECT_EQ(attention->options.num_heads(), 4);
  EXPECT_EQ(attention->options.dropout(), 0.5);
  const auto lstm = copied<nn::LSTMImpl>(
      [](auto& layer) { layer.options_base.dropout(0.123456789); },
      nn::LSTMOptions(2, 3).num_layers(2).dropout(0.123457));
  EXPECT_EQ(lstm->options_base.dropout(), 0.123456789);
}

TEST(LayerOptions, ThatAreTensorsStayTheCopysOwn) {
  const auto weight = torch::tensor({1.F, 2.F});
  const auto make = [&weight] {
    return std::make_shared<nn::BCEWithLogitsLossImpl>(
        nn::BCEWithLogitsLossOptions()
            .weight(weight.clone())
            .pos_weight(weight.clone()));
  };
  const auto loss = make();
  const auto copy = copy_constructed_by(make, *loss);
  ASSERT_TRUE(copy);
  EXPECT_TRUE(copy->borrowed.empty());
  const auto* made = copy->module->as<nn::BCEWithLogitsLoss>();
  EXPECT_FALSE(made->options.weight().is_same(loss->options.weight()));
  EXPECT_TRUE(made->options.weight().is_same(made->weight));
  EXPECT_TRUE(made->options.pos_weight().is_same(made->pos_weight));
}

// It may call what the copy's constructor made.
TEST(LayerOptions, ThatAreFunctionsStayTheCopysOwn) {
  int made = 0;
  std::vector<int> calls(2);
  const auto make = [&] {
    const auto activation = [&calls, own = made++](const at::Tensor& x) {
      ++calls.at(static_cast<std::size_t>(own));
      return at::relu(x);
    };
    return std::make_shared<nn::TransformerEncoderLayerImpl>(
        nn::TransformerEncoderLayerOptions(4, 2).dropout(0).activation(
            activation));
  };
  const auto layer = make();
  const auto copy = copy_constructed_by(make, *layer);
  ASSERT_TRUE(copy);
  copy->module->as<nn::TransformerEncoderLayer>()->forward(
      torch::ones({3, 1, 4}));
  EXPECT_THAT(calls, testing::ElementsAre(0, 1));
}

at::Tensor twice(at::Tensor x) {
  return x * 2;
}
at::Tensor thrice(at::Tensor x) {
  return x * 3;
}

TEST(Functionals, ThatCallOtherFunctionsAreToldApart) {
  const nn::Functional pointer(twice);
  const nn::Functional object([](const at::Tensor& x) { return x * 2; });
  const auto may_be = [](const nn::Functional& a, const nn::Functional& b) {
    return may_call_same(*a, *b);
  };
  EXPECT_TRUE(may_be(pointer, nn::Functional(twice)));
  EXPECT_FALSE(may_be(pointer, nn::Functional(thrice)));
  EXPECT_FALSE(may_be(pointer, object));
  EXPECT_TRUE(may_be(object, object));
}

} // namespace
} // namespace lockstep
