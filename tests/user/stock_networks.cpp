// SPDX-License-Identifier: BSD-3-Clause
#include "tests/user/stock_rows.h"

namespace lockstep::test {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

const StockTraits kSecond{.dim = 1};
const StockTraits kSecondOfTwo{.dim = 1, .with_gradient = 2};

void add_recurrent(StockRows& rows) {
  const auto sequence = x({5, 4, 3});
  add<nn::RNN>(
      rows,
      [] { return nn::RNN(3, 2); },
      {sequence},
      kSecond);
  add<nn::GRU>(
      rows,
      [] { return nn::GRU(nn::GRUOptions(3, 2).bidirectional(true)); },
      {sequence},
      kSecond);
  add<nn::LSTM>(
      rows,
      [] { return nn::LSTM(nn::LSTMOptions(3, 2).num_layers(2)); },
      {sequence},
      kSecond);
  add<nn::RNNCell>(rows, [] { return nn::RNNCell(3, 2); }, {x({4, 3})});
  add<nn::GRUCell>(rows, [] { return nn::GRUCell(3, 2); }, {x({4, 3})});
  add<nn::LSTMCell>(rows, [] { return nn::LSTMCell(3, 2); }, {x({4, 3})});
}

nn::TransformerEncoderLayerOptions encoder_layer() {
  return nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(6).dropout(
      0.0);
}
nn::TransformerDecoderLayerOptions decoder_layer() {
  return nn::TransformerDecoderLayerOptions(4, 2).dim_feedforward(6).dropout(
      0.0);
}
nn::AnyModule layer_norm() {
  return nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({4})));
}

void add_transformers(StockRows& rows) {
  const auto source = x({3, 4, 4});
  const auto target = x({2, 4, 4});
  add<nn::TransformerEncoderLayer>(
      rows,
      [] { return nn::TransformerEncoderLayer(encoder_layer()); },
      {source},
      kSecond);
  add<nn::TransformerDecoderLayer, 2>(
      rows,
      [] { return nn::TransformerDecoderLayer(decoder_layer()); },
      {target, source},
      kSecondOfTwo);
  add<nn::TransformerEncoder>(
      rows,
      [] {
        return nn::TransformerEncoder(
            nn::TransformerEncoderOptions(encoder_layer(), 2)
                .norm(layer_norm()));
      },
      {source},
      kSecond);
  add<nn::TransformerDecoder, 2>(
      rows,
      [] {
        return nn::TransformerDecoder(
            nn::TransformerDecoderOptions(decoder_layer(), 2)
                .norm(layer_norm()));
      },
      {target, source},
      kSecondOfTwo);
  add<nn::Transformer, 2>(
      rows,
      [] {
        return nn::Transformer(
            nn::TransformerOptions(4, 2, 1, 1).dim_feedforward(6).dropout(0.0));
      },
      {source, target},
      kSecondOfTwo);
  add<nn::MultiheadAttention, 3>(
      rows,
      [] { return nn::MultiheadAttention(4, 2); },
      {target, source, source.clone()},
      {.dim = 1, .with_gradient = 3});
  // The batch is the first dimension of the weights.
  rows.back().call = [](nn::Module& module, const Tensors& in) -> Tensors {
    return {std::get<0>(module.as<nn::MultiheadAttention>()
                            ->forward(in.at(0), in.at(1), in.at(2)))};
  };
}

template <class Holder, class Make>
void add_table(StockRows& rows, Make make, const StockTraits& traits) {
  const auto indices = torch::tensor({{0, 1}, {1, 2}, {5, 3}, {2, 5}});
  StockTraits all = traits;
  all.with_gradient = 0;
  add<Holder>(rows, make, {indices}, all);
}

void add_embeddings(StockRows& rows) {
  const auto embedding = [&rows](auto make, const StockTraits& traits = {}) {
    add_table<nn::Embedding>(rows, make, traits);
  };
  const auto options = nn::EmbeddingOptions(6, 3);
  const auto table = x({6, 3});
  embedding([options] { return options; });
  embedding(
      [options] { return nn::EmbeddingOptions(options).padding_idx(5); },
      {.variant = "padding_idx"});
  embedding(
      [options] { return nn::EmbeddingOptions(options).max_norm(0.5); },
      {.variant = "max_norm"});
  embedding(
      [options] {
        return nn::EmbeddingOptions(options).max_norm(0.5).norm_type(1);
      },
      {.variant = "max_norm, norm_type 1"});
  embedding(
      [options] { return nn::EmbeddingOptions(options).sparse(true); },
      {.variant = "sparse", .is_cpu_only = true});
  embedding(
      [options] {
        return nn::EmbeddingOptions(options).sparse(true).max_norm(0.5);
      },
      {.variant = "sparse, max_norm", .is_cpu_only = true});
  embedding(
      [options] {
        return nn::EmbeddingOptions(options).scale_grad_by_freq(true);
      },
      {.variant = "scale_grad_by_freq", .against = Against::kShards});
  embedding(
      [options, table = table.clone()] {
        return nn::EmbeddingOptions(options)._weight(table);
      },
      {.variant = "_weight"});
  embedding(
      [table = table.clone()] { return nn::Embedding::from_pretrained(table); },
      {.variant = "from_pretrained, frozen"});
  embedding(
      [table = table.clone()] {
        return nn::Embedding::from_pretrained(
            table,
            nn::EmbeddingFromPretrainedOptions().freeze(false).max_norm(0.5));
      },
      {.variant = "from_pretrained, max_norm"});
}

void add_bags(StockRows& rows) {
  const auto bag = [&rows](auto make, const StockTraits& traits = {}) {
    add_table<nn::EmbeddingBag>(rows, make, traits);
  };
  const auto options = nn::EmbeddingBagOptions(6, 3);
  const auto table = x({6, 3});
  bag([options] { return options; });
  bag([options] { return nn::EmbeddingBagOptions(options).max_norm(0.5); },
      {.variant = "max_norm"});
  bag([options] { return nn::EmbeddingBagOptions(options).sparse(true); },
      {.variant = "sparse", .is_cpu_only = true});
  bag([options,
       table] { return nn::EmbeddingBagOptions(options)._weight(table); },
      {.variant = "_weight"});
  bag([table =
           table.clone()] { return nn::EmbeddingBag::from_pretrained(table); },
      {.variant = "from_pretrained, frozen"});
}

Tensors through_list(nn::Module& module, const Tensors& in) {
  Tensor out = in.front();
  for (const auto& child : module.children()) {
    out = child->as<nn::Linear>()->forward(out);
  }
  return {out};
}

Tensors times_parameters(nn::Module& module, const Tensors& in) {
  Tensor out = in.front();
  for (const Tensor& parameter : module.parameters(/*recurse=*/false)) {
    out = out * parameter;
  }
  return {out};
}

void add_containers(StockRows& rows) {
  const Tensors in{x({4, 3})};
  const auto scale = x({3});
  rows.push_back(
      {.make =
           [] {
             return nn::Sequential({{"first", nn::AnyModule(nn::Linear(3, 3))},
                                    {"then", nn::AnyModule(nn::ReLU())}})
                 .ptr();
           },
       .call = [](nn::Module& module, const Tensors& x) -> Tensors {
         return {module.as<nn::Sequential>()->forward(x.front())};
       },
       .inputs = in});
  rows.push_back(
      {.make =
           [] {
             return nn::ModuleList(nn::Linear(3, 3), nn::Linear(3, 3)).ptr();
           },
       .call = &through_list,
       .inputs = in});
  rows.push_back(
      {.make =
           [] {
             using Named = std::pair<std::string, std::shared_ptr<nn::Module>>;
             return nn::ModuleDict(
                        std::vector<Named>{{"a", nn::Linear(3, 3).ptr()}})
                 .ptr();
           },
       .call = &through_list,
       .inputs = in});
  rows.push_back(
      {.make =
           [scale = scale.clone()] {
             return nn::ParameterList(
                        scale,
                        torch::ones({3}, torch::requires_grad()))
                 .ptr();
           },
       .call = &times_parameters,
       .inputs = in});
  rows.push_back(
      {.make =
           [scale = scale.clone()] {
             nn::ParameterDict dict;
             dict->insert("w", torch::ones({3}, torch::requires_grad()));
             dict->insert("frozen", scale);
             return dict.ptr();
           },
       .call = &times_parameters,
       .inputs = in});
  add<nn::Functional>(
      rows,
      [] { return nn::Functional(torch::relu); },
      {x({4, 3})});
}

} // namespace

void add_stock_networks(StockRows& rows) {
  add_recurrent(rows);
  add_transformers(rows);
  add_embeddings(rows);
  add_bags(rows);
  add_containers(rows);
}

} // namespace lockstep::test
