// SPDX-License-Identifier: BSD-3-Clause
//
// Options of the layers without parameters.
#include <array>

#include <torch/nn/modules.h>

#include "lockstep/tensor/internal/layer_fields.h"
#include "lockstep/tensor/internal/layer_text.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using layer_fields::enum_text;
using layer_fields::equal_or_tuple;
using layer_fields::field;
using layer_fields::first_text;
using layer_fields::Printer;
using layer_fields::size_or_tuple;
using layer_fields::text_of;
using layer_fields::try_layer;
using layer_fields::tuple;
using layer_fields::unless;

// Activations whose only option is `inplace`.
template <class Layer>
std::string inplace_text(const Layer& layer) {
  return layer.options.inplace() ? "inplace=True" : "";
}

template <class Layer>
std::string alpha_text(const Layer& layer) {
  return field("alpha", layer.options.alpha()) +
         unless("inplace", layer.options.inplace(), false);
}

std::string leaky_relu_text(const nn::LeakyReLUImpl& layer) {
  return field("negative_slope", layer.options.negative_slope()) +
         unless("inplace", layer.options.inplace(), false);
}

std::string rrelu_text(const nn::RReLUImpl& layer) {
  const auto& o = layer.options;
  return field("lower", o.lower()) + ", " + field("upper", o.upper()) +
         unless("inplace", o.inplace(), false);
}

std::string hardtanh_text(const nn::HardtanhImpl& layer) {
  const auto& o = layer.options;
  return field("min_val", o.min_val()) + ", " + field("max_val", o.max_val()) +
         unless("inplace", o.inplace(), false);
}

std::string threshold_text(const nn::ThresholdImpl& layer) {
  const auto& o = layer.options;
  return field("threshold", o.threshold()) + ", " + field("value", o.value()) +
         unless("inplace", o.inplace(), false);
}

std::string softplus_text(const nn::SoftplusImpl& layer) {
  return field("beta", layer.options.beta()) + ", " +
         field("threshold", layer.options.threshold());
}

template <class Layer>
std::string lambda_text(const Layer& layer) {
  return text_of(layer.options.lambda());
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

template <class Layer>
std::string avg_pool_text(const Layer& layer) {
  const auto& o = layer.options;
  return "kernel_size=" + size_or_tuple(o.kernel_size()) +
         ", stride=" + size_or_tuple(o.stride()) +
         ", padding=" + size_or_tuple(o.padding());
}

// Layers for which Python makes a tuple of every size.
template <class Layer>
std::string tuple_pool_text(const Layer& layer) {
  const auto& o = layer.options;
  return "kernel_size=" + tuple(o.kernel_size()) +
         ", stride=" + tuple(o.stride()) + ", padding=" + tuple(o.padding());
}

template <class Layer>
std::string lp_pool_text(const Layer& layer) {
  const auto& o = layer.options;
  return field("norm_type", o.norm_type()) +
         ", kernel_size=" + size_or_tuple(o.kernel_size()) +
         ", stride=" + size_or_tuple(o.stride()) + ", " +
         field("ceil_mode", o.ceil_mode());
}

template <class Layer>
std::string adaptive_1d_text(const Layer& layer) {
  return field("output_size", (*layer.options.output_size())[0]);
}

template <class Layer>
std::string adaptive_text(const Layer& layer) {
  std::string sizes;
  for (const auto& size : *layer.options.output_size()) {
    sizes += (sizes.empty() ? "" : ", ") + text_of(size);
  }
  return "output_size=(" + sizes + ")";
}

template <class Layer>
std::string pad_text(const Layer& layer) {
  return tuple(layer.options.padding());
}

template <class Layer>
std::string constant_pad_text(const Layer& layer) {
  return "padding=" + pad_text(layer) + ", " +
         field("value", layer.options.value());
}

std::string flatten_text(const nn::FlattenImpl& layer) {
  return field("start_dim", layer.options.start_dim()) + ", " +
         field("end_dim", layer.options.end_dim());
}

std::string unflatten_text(const nn::UnflattenImpl& layer) {
  return field("dim", layer.options.dim()) +
         ", unflattened_size=" + tuple_text(layer.options.sizes());
}

template <class Options>
std::string window_text(const Options& o) {
  return "kernel_size=" + size_or_tuple(o.kernel_size()) +
         ", dilation=" + size_or_tuple(o.dilation()) +
         ", padding=" + size_or_tuple(o.padding()) +
         ", stride=" + size_or_tuple(o.stride());
}

std::string fold_text(const nn::FoldImpl& layer) {
  return "output_size=" + size_or_tuple(layer.options.output_size()) + ", " +
         window_text(layer.options);
}

std::string unfold_text(const nn::UnfoldImpl& layer) {
  return window_text(layer.options);
}

std::string upsample_text(const nn::UpsampleImpl& layer) {
  const auto& o = layer.options;
  const auto size = o.size();
  const auto factor = o.scale_factor();
  const std::string target =
      factor ? "scale_factor=" + equal_or_tuple(*factor)
             : "size=" + (size ? equal_or_tuple(*size) : "None");
  return target + ", mode=" + python_repr(enum_text(o.mode()));
}

std::string shuffle_text(const nn::PixelShuffleImpl& layer) {
  return field("upscale_factor", layer.options.upscale_factor());
}
std::string unshuffle_text(const nn::PixelUnshuffleImpl& layer) {
  return field("downscale_factor", layer.options.downscale_factor());
}

template <class Layer>
std::string response_norm_text(const Layer& layer) {
  const auto& o = layer.options;
  return text_of(o.size()) + ", " + field("alpha", o.alpha()) + ", " +
         field("beta", o.beta()) + ", " + field("k", o.k());
}

constexpr std::array kStatelessPrinters{
    Printer{try_layer<nn::LocalResponseNormImpl, response_norm_text>},
    Printer{try_layer<nn::CrossMapLRN2dImpl, response_norm_text>},
    Printer{try_layer<nn::ReLUImpl, inplace_text>},
    Printer{try_layer<nn::ReLU6Impl, inplace_text>},
    Printer{try_layer<nn::SELUImpl, inplace_text>},
    Printer{try_layer<nn::ELUImpl, alpha_text>},
    Printer{try_layer<nn::CELUImpl, alpha_text>},
    Printer{try_layer<nn::LeakyReLUImpl, leaky_relu_text>},
    Printer{try_layer<nn::RReLUImpl, rrelu_text>},
    Printer{try_layer<nn::HardtanhImpl, hardtanh_text>},
    Printer{try_layer<nn::ThresholdImpl, threshold_text>},
    Printer{try_layer<nn::SoftplusImpl, softplus_text>},
    Printer{try_layer<nn::SoftshrinkImpl, lambda_text>},
    Printer{try_layer<nn::HardshrinkImpl, lambda_text>},
    Printer{try_layer<nn::GELUImpl, gelu_text>},
    Printer{try_layer<nn::GLUImpl, dim_text>},
    Printer{try_layer<nn::SoftmaxImpl, dim_text>},
    Printer{try_layer<nn::SoftminImpl, dim_text>},
    Printer{try_layer<nn::LogSoftmaxImpl, dim_text>},
    Printer{try_layer<nn::DropoutImpl, dropout_text>},
    Printer{try_layer<nn::Dropout2dImpl, dropout_text>},
    Printer{try_layer<nn::Dropout3dImpl, dropout_text>},
    Printer{try_layer<nn::AlphaDropoutImpl, dropout_text>},
    Printer{try_layer<nn::FeatureAlphaDropoutImpl, dropout_text>},
    Printer{try_layer<nn::MaxPool1dImpl, max_pool_text>},
    Printer{try_layer<nn::MaxPool2dImpl, max_pool_text>},
    Printer{try_layer<nn::MaxPool3dImpl, max_pool_text>},
    Printer{try_layer<nn::AvgPool2dImpl, avg_pool_text>},
    Printer{try_layer<nn::AvgPool3dImpl, avg_pool_text>},
    Printer{try_layer<nn::AvgPool1dImpl, tuple_pool_text>},
    Printer{try_layer<nn::MaxUnpool1dImpl, tuple_pool_text>},
    Printer{try_layer<nn::MaxUnpool2dImpl, tuple_pool_text>},
    Printer{try_layer<nn::MaxUnpool3dImpl, tuple_pool_text>},
    Printer{try_layer<nn::LPPool1dImpl, lp_pool_text>},
    Printer{try_layer<nn::LPPool2dImpl, lp_pool_text>},
    Printer{try_layer<nn::LPPool3dImpl, lp_pool_text>},
    Printer{try_layer<nn::AdaptiveAvgPool1dImpl, adaptive_1d_text>},
    Printer{try_layer<nn::AdaptiveMaxPool1dImpl, adaptive_1d_text>},
    Printer{try_layer<nn::AdaptiveAvgPool2dImpl, adaptive_text>},
    Printer{try_layer<nn::AdaptiveAvgPool3dImpl, adaptive_text>},
    Printer{try_layer<nn::AdaptiveMaxPool2dImpl, adaptive_text>},
    Printer{try_layer<nn::AdaptiveMaxPool3dImpl, adaptive_text>},
    Printer{try_layer<nn::ReflectionPad1dImpl, pad_text>},
    Printer{try_layer<nn::ReflectionPad2dImpl, pad_text>},
    Printer{try_layer<nn::ReflectionPad3dImpl, pad_text>},
    Printer{try_layer<nn::ReplicationPad1dImpl, pad_text>},
    Printer{try_layer<nn::ReplicationPad2dImpl, pad_text>},
    Printer{try_layer<nn::ReplicationPad3dImpl, pad_text>},
    Printer{try_layer<nn::ZeroPad1dImpl, pad_text>},
    Printer{try_layer<nn::ZeroPad2dImpl, pad_text>},
    Printer{try_layer<nn::ZeroPad3dImpl, pad_text>},
    Printer{try_layer<nn::ConstantPad1dImpl, constant_pad_text>},
    Printer{try_layer<nn::ConstantPad2dImpl, constant_pad_text>},
    Printer{try_layer<nn::ConstantPad3dImpl, constant_pad_text>},
    Printer{try_layer<nn::FlattenImpl, flatten_text>},
    Printer{try_layer<nn::UnflattenImpl, unflatten_text>},
    Printer{try_layer<nn::FoldImpl, fold_text>},
    Printer{try_layer<nn::UnfoldImpl, unfold_text>},
    Printer{try_layer<nn::UpsampleImpl, upsample_text>},
    Printer{try_layer<nn::PixelShuffleImpl, shuffle_text>},
    Printer{try_layer<nn::PixelUnshuffleImpl, unshuffle_text>},
};

} // namespace

std::string stateless_text(const nn::Module& module) {
  return first_text(kStatelessPrinters, module).value_or("");
}

} // namespace lockstep
