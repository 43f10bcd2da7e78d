// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/layer_text.h"

#include <algorithm>
#include <array>
#include <optional>

#include <torch/enum.h>
#include <torch/nn/modules.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/python_text.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

std::string text_of(bool value) {
  return value ? "True" : "False";
}
std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
std::string text_of(double value) {
  return shortest(value);
}
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "None";
}

template <std::size_t D>
std::string tuple(const torch::ExpandingArray<D>& sizes) {
  return tuple_text(c10::IntArrayRef(*sizes));
}

template <std::size_t D>
bool all_are(const torch::ExpandingArray<D>& sizes, std::int64_t value) {
  return std::ranges::all_of(*sizes, [&](auto size) { return size == value; });
}

// "2" for equal sizes, else "(2, 1)".
template <std::size_t D>
std::string size_or_tuple(const torch::ExpandingArray<D>& sizes) {
  const std::int64_t first = (*sizes)[0];
  return all_are(sizes, first) ? text_of(first) : tuple(sizes);
}

template <class T>
std::string field(const char* name, const T& value) {
  return std::string(name) + "=" + text_of(value);
}

std::string inplace_text(bool inplace) {
  return inplace ? "inplace=True" : "";
}

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

// "torch::kReflect" -> ", padding_mode=reflect".
template <class Mode>
std::string padding_mode_text(const Mode& mode) {
  std::string name = torch::enumtype::get_enum_name(mode);
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  name = name.substr(name.find_last_of(':') + 1);
  name = name.starts_with('k') ? name.substr(1) : name;
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
  text += o.groups() == 1 ? "" : ", " + field("groups", o.groups());
  text += o.bias() ? "" : ", bias=False";
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

std::string relu_text(const nn::ReLUImpl& layer) {
  return inplace_text(layer.options.inplace());
}

std::string leaky_relu_text(const nn::LeakyReLUImpl& layer) {
  const std::string text =
      field("negative_slope", layer.options.negative_slope());
  return text + (layer.options.inplace() ? ", inplace=True" : "");
}

std::string gelu_text(const nn::GELUImpl& layer) {
  return "approximate=" + python_repr(layer.options.approximate());
}

template <class Layer>
std::string dim_text(const Layer& layer) {
  return field("dim", layer.options.dim());
}

template <class Layer>
std::string dropout_text(const Layer& layer) {
  return field("p", layer.options.p()) + ", " +
         field("inplace", layer.options.inplace());
}

template <class Layer>
std::string max_pool_text(const Layer& layer) {
  const auto& o = layer.options;
  return "kernel_size=" + size_or_tuple(o.kernel_size()) +
         ", stride=" + size_or_tuple(o.stride()) +
         ", padding=" + size_or_tuple(o.padding()) +
         ", dilation=" + size_or_tuple(o.dilation()) + ", " +
         field("ceil_mode", o.ceil_mode());
}

std::string avg_pool_text(const nn::AvgPool2dImpl& layer) {
  const auto& o = layer.options;
  return "kernel_size=" + size_or_tuple(o.kernel_size()) +
         ", stride=" + size_or_tuple(o.stride()) +
         ", padding=" + size_or_tuple(o.padding());
}

std::string adaptive_1d_text(const nn::AdaptiveAvgPool1dImpl& layer) {
  return field("output_size", (*layer.options.output_size())[0]);
}

template <class Layer>
std::string adaptive_2d_text(const Layer& layer) {
  const auto& sizes = *layer.options.output_size();
  return "output_size=(" + text_of(sizes[0]) + ", " + text_of(sizes[1]) + ")";
}

std::string flatten_text(const nn::FlattenImpl& layer) {
  return field("start_dim", layer.options.start_dim()) + ", " +
         field("end_dim", layer.options.end_dim());
}

std::string embedding_text(const nn::EmbeddingImpl& layer) {
  const auto& o = layer.options;
  return text_of(o.num_embeddings()) + ", " + text_of(o.embedding_dim()) +
         (o.padding_idx() ? ", " + field("padding_idx", o.padding_idx()) : "");
}

using Printer = std::optional<std::string> (*)(const nn::Module&);

template <class Layer, std::string (*Text)(const Layer&)>
std::optional<std::string> try_layer(const nn::Module& module) {
  const auto* layer = dynamic_cast<const Layer*>(&module);
  return layer == nullptr ? std::nullopt : std::optional(Text(*layer));
}

constexpr std::array kPrinters{
    Printer{try_layer<nn::Conv1dImpl, conv_text>},
    Printer{try_layer<nn::Conv2dImpl, conv_text>},
    Printer{try_layer<nn::Conv3dImpl, conv_text>},
    Printer{try_layer<nn::ConvTranspose1dImpl, conv_text>},
    Printer{try_layer<nn::ConvTranspose2dImpl, conv_text>},
    Printer{try_layer<nn::ConvTranspose3dImpl, conv_text>},
    Printer{try_layer<nn::LinearImpl, linear_text>},
    Printer{try_layer<nn::BatchNorm1dImpl, batch_norm_text>},
    Printer{try_layer<nn::BatchNorm2dImpl, batch_norm_text>},
    Printer{try_layer<nn::BatchNorm3dImpl, batch_norm_text>},
    Printer{try_layer<nn::InstanceNorm1dImpl, batch_norm_text>},
    Printer{try_layer<nn::InstanceNorm2dImpl, batch_norm_text>},
    Printer{try_layer<nn::InstanceNorm3dImpl, batch_norm_text>},
    Printer{try_layer<nn::GroupNormImpl, group_norm_text>},
    Printer{try_layer<nn::LayerNormImpl, layer_norm_text>},
    Printer{try_layer<nn::ReLUImpl, relu_text>},
    Printer{try_layer<nn::LeakyReLUImpl, leaky_relu_text>},
    Printer{try_layer<nn::GELUImpl, gelu_text>},
    Printer{try_layer<nn::SoftmaxImpl, dim_text>},
    Printer{try_layer<nn::LogSoftmaxImpl, dim_text>},
    Printer{try_layer<nn::DropoutImpl, dropout_text>},
    Printer{try_layer<nn::Dropout2dImpl, dropout_text>},
    Printer{try_layer<nn::Dropout3dImpl, dropout_text>},
    Printer{try_layer<nn::MaxPool1dImpl, max_pool_text>},
    Printer{try_layer<nn::MaxPool2dImpl, max_pool_text>},
    Printer{try_layer<nn::MaxPool3dImpl, max_pool_text>},
    Printer{try_layer<nn::AvgPool2dImpl, avg_pool_text>},
    Printer{try_layer<nn::AdaptiveAvgPool1dImpl, adaptive_1d_text>},
    Printer{try_layer<nn::AdaptiveAvgPool2dImpl, adaptive_2d_text>},
    Printer{try_layer<nn::AdaptiveMaxPool2dImpl, adaptive_2d_text>},
    Printer{try_layer<nn::FlattenImpl, flatten_text>},
    Printer{try_layer<nn::EmbeddingImpl, embedding_text>},
};

} // namespace

std::string layer_text(const nn::Module& module) {
  for (const Printer printer : kPrinters) {
    if (auto text = printer(module)) {
      return *text;
    }
  }
  return {};
}

} // namespace lockstep
