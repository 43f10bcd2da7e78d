// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/layer_text.h"

#include <array>

#include <torch/nn/modules.h>

#include "lockstep/tensor/internal/layer_fields.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using layer_fields::all_are;
using layer_fields::enum_text;
using layer_fields::field;
using layer_fields::first_text;
using layer_fields::Printer;
using layer_fields::text_of;
using layer_fields::try_layer;
using layer_fields::tuple;
using layer_fields::unless;

std::string padding_text(torch::enumtype::kSame /*padding*/) {
  return ", padding=same";
}
std::string padding_text(torch::enumtype::kValid /*padding*/) {
  return ", padding=valid";
}
template <std::size_t D>
std::string padding_text(const torch::ExpandingArray<D>& sizes) {
  return all_are(sizes, 0) ? "" : ", padding=" + tuple(sizes);
}

template <class Mode>
std::string padding_mode_text(const Mode& mode) {
  const std::string name = enum_text(mode);
  return name == "zeros" ? "" : ", padding_mode=" + name;
}

template <class Layer>
std::string conv_text(const Layer& layer) {
  const auto& o = layer.options;
  std::string text = text_of(o.in_channels()) + ", " +
                     text_of(o.out_channels()) +
                     ", kernel_size=" + tuple(o.kernel_size()) +
                     ", stride=" + tuple(o.stride());
  text +=
      std::visit([](const auto& p) { return padding_text(p); }, o.padding());
  text += all_are(o.dilation(), 1) ? "" : ", dilation=" + tuple(o.dilation());
  text += all_are(o.output_padding(), 0)
              ? ""
              : ", output_padding=" + tuple(o.output_padding());
  text += unless("groups", o.groups(), std::int64_t{1});
  text += unless("bias", o.bias(), true);
  return text + padding_mode_text(o.padding_mode());
}

std::string linear_text(const nn::LinearImpl& layer) {
  const auto& o = layer.options;
  return field("in_features", o.in_features()) + ", " +
         field("out_features", o.out_features()) + ", " +
         field("bias", o.bias());
}

template <class Layer>
std::string batch_norm_text(const Layer& layer) {
  const auto& o = layer.options;
  return text_of(o.num_features()) + ", " + field("eps", o.eps()) + ", " +
         field("momentum", o.momentum()) + ", " + field("affine", o.affine()) +
         ", " + field("bias", o.affine()) + ", " +
         field("track_running_stats", o.track_running_stats());
}

std::string group_norm_text(const nn::GroupNormImpl& layer) {
  const auto& o = layer.options;
  return text_of(o.num_groups()) + ", " + text_of(o.num_channels()) + ", " +
         field("eps", o.eps()) + ", " + field("affine", o.affine()) + ", " +
         field("bias", o.affine());
}

std::string layer_norm_text(const nn::LayerNormImpl& layer) {
  const auto& o = layer.options;
  return tuple_text(o.normalized_shape()) + ", " + field("eps", o.eps()) +
         ", " + field("elementwise_affine", o.elementwise_affine()) + ", " +
         field("bias", o.elementwise_affine());
}

std::string prelu_text(const nn::PReLUImpl& layer) {
  return field("num_parameters", layer.options.num_parameters());
}

std::string bilinear_text(const nn::BilinearImpl& layer) {
  const auto& o = layer.options;
  return field("in1_features", o.in1_features()) + ", " +
         field("in2_features", o.in2_features()) + ", " +
         field("out_features", o.out_features()) + ", " +
         field("bias", o.bias());
}

template <class Options>
std::string table_text(const Options& o) {
  return text_of(o.num_embeddings()) + ", " + text_of(o.embedding_dim());
}

template <class Options>
std::string norm_limit_text(const Options& o) {
  return (o.max_norm() ? ", " + field("max_norm", o.max_norm()) : "") +
         unless("norm_type", o.norm_type(), 2.0) +
         unless("scale_grad_by_freq", o.scale_grad_by_freq(), false);
}

template <class Options>
std::string padding_row_text(const Options& o) {
  return o.padding_idx() ? ", " + field("padding_idx", o.padding_idx()) : "";
}

std::string embedding_text(const nn::EmbeddingImpl& layer) {
  const auto& o = layer.options;
  return table_text(o) + padding_row_text(o) + norm_limit_text(o) +
         unless("sparse", o.sparse(), false);
}

std::string embedding_bag_text(const nn::EmbeddingBagImpl& layer) {
  const auto& o = layer.options;
  return table_text(o) + norm_limit_text(o) +
         ", mode=" + python_repr(enum_text(o.mode())) + padding_row_text(o);
}

template <class Layer>
std::string rnn_text(const Layer& layer) {
  const auto& o = layer.options_base;
  return text_of(o.input_size()) + ", " + text_of(o.hidden_size()) +
         unless("proj_size", o.proj_size(), std::int64_t{0}) +
         unless("num_layers", o.num_layers(), std::int64_t{1}) +
         unless("bias", o.bias(), true) +
         unless("batch_first", o.batch_first(), false) +
         unless("dropout", o.dropout(), 0.0) +
         unless("bidirectional", o.bidirectional(), false);
}

template <class Layer>
std::string rnn_cell_text(const Layer& layer) {
  const auto& o = layer.options_base;
  return text_of(o.input_size()) + ", " + text_of(o.hidden_size()) +
         unless("bias", o.bias(), true);
}

std::string elman_cell_text(const nn::RNNCellImpl& layer) {
  const std::string name = enum_text(layer.options.nonlinearity());
  return rnn_cell_text(layer) +
         (name == "tanh" ? "" : ", nonlinearity=" + name);
}

constexpr std::array kPrinters{
    Printer{try_layer<nn::Conv1dImpl, conv_text>},
    Printer{try_layer<nn::Conv2dImpl, conv_text>},
    Printer{try_layer<nn::Conv3dImpl, conv_text>},
    Printer{try_layer<nn::ConvTranspose1dImpl, conv_text>},
    Printer{try_layer<nn::ConvTranspose2dImpl, conv_text>},
    Printer{try_layer<nn::ConvTranspose3dImpl, conv_text>},
    Printer{try_layer<nn::LinearImpl, linear_text>},
    Printer{try_layer<nn::BilinearImpl, bilinear_text>},
    Printer{try_layer<nn::BatchNorm1dImpl, batch_norm_text>},
    Printer{try_layer<nn::BatchNorm2dImpl, batch_norm_text>},
    Printer{try_layer<nn::BatchNorm3dImpl, batch_norm_text>},
    Printer{try_layer<nn::InstanceNorm1dImpl, batch_norm_text>},
    Printer{try_layer<nn::InstanceNorm2dImpl, batch_norm_text>},
    Printer{try_layer<nn::InstanceNorm3dImpl, batch_norm_text>},
    Printer{try_layer<nn::GroupNormImpl, group_norm_text>},
    Printer{try_layer<nn::LayerNormImpl, layer_norm_text>},
    Printer{try_layer<nn::PReLUImpl, prelu_text>},
    Printer{try_layer<nn::EmbeddingImpl, embedding_text>},
    Printer{try_layer<nn::EmbeddingBagImpl, embedding_bag_text>},
    Printer{try_layer<nn::RNNImpl, rnn_text>},
    Printer{try_layer<nn::LSTMImpl, rnn_text>},
    Printer{try_layer<nn::GRUImpl, rnn_text>},
    Printer{try_layer<nn::LSTMCellImpl, rnn_cell_text>},
    Printer{try_layer<nn::GRUCellImpl, rnn_cell_text>},
    Printer{try_layer<nn::RNNCellImpl, elman_cell_text>},
};

} // namespace

std::string layer_text(const nn::Module& module) {
  if (auto text = first_text(kPrinters, module)) {
    return *text;
  }
  const std::string text = stateless_text(module);
  return text.empty() ? parameters_text(module) : text;
}

} // namespace lockstep
