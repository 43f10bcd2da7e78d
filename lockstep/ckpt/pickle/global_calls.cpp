// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/global_calls.h"

#include <limits>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/ckpt/pickle/pickle_text.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// LibTorch writes the index into the text: "cuda:1".
void split_index(Device& device) {
  const std::size_t colon = device.type.find(':');
  if (colon == std::string::npos) {
    return;
  }
  const auto index =
      parse_number<int>(std::string_view(device.type).substr(colon + 1), 0);
  if (index) {
    device.index = *index;
    device.type.resize(colon);
  }
}

std::optional<Value> only(Value value) {
  return {std::move(value)};
}

} // namespace

CallResult call_ordered_dict(const Tuple& args) {
  Dict dict{.kind = Dict::Kind::kOrderedDict};
  if (args.items.empty()) {
    return only(std::move(dict));
  }
  // Python 2 writes the pairs as an argument.
  const auto pairs = args.items[0].elements();
  if (args.items.size() != 1 || pairs == nullptr) {
    return std::optional<Value>();
  }
  for (const Value& pair : *pairs) {
    const auto parts = pair.elements();
    if (parts == nullptr || parts->size() != 2) {
      return std::optional<Value>();
    }
    dict.items.emplace_back((*parts)[0], (*parts)[1]);
  }
  return only(std::move(dict));
}

CallResult call_counter(const Tuple& args) {
  Dict counter{.kind = Dict::Kind::kCounter};
  if (args.items.empty()) {
    return only(std::move(counter));
  }
  const Dict* counts = args.items[0].as_dict();
  if (args.items.size() != 1 || counts == nullptr) {
    return std::optional<Value>();
  }
  counter.items = counts->items;
  return only(std::move(counter));
}

CallResult call_set(const Tuple& args) {
  if (args.items.empty()) {
    return only(Set{});
  }
  const auto elements = args.items[0].elements();
  if (args.items.size() != 1 || elements == nullptr) {
    return std::optional<Value>();
  }
  return only(Set{*elements});
}

CallResult call_size(const Tuple& args) {
  if (args.items.size() != 1) {
    return std::optional<Value>();
  }
  auto sizes = integers_of(args.items[0]);
  return sizes ? only(Size{*std::move(sizes)}) : std::optional<Value>();
}

CallResult call_device(const Tuple& args) {
  if (args.items.empty() || args.items.size() > 2) {
    return std::optional<Value>();
  }
  const std::string* type = args.items[0].as_string();
  if (type == nullptr) {
    return std::optional<Value>();
  }
  Device device{.type = *type};
  if (args.items.size() == 1) {
    split_index(device);
  } else {
    const std::int64_t* index = args.items[1].as_int();
    if (index == nullptr || !std::in_range<int>(*index)) {
      return std::optional<Value>();
    }
    device.index = static_cast<int>(*index);
  }
  return only(std::move(device));
}

CallResult call_complex(const Tuple& args) {
  if (args.items.size() != 2) {
    return std::optional<Value>();
  }
  const auto real = args.items[0].number();
  const auto imaginary = args.items[1].number();
  if (!real || !imaginary) {
    return std::optional<Value>();
  }
  return only(Complex{.real = *real, .imag = *imaginary});
}

CallResult call_encode(const Tuple& args) {
  if (args.items.size() != 2) {
    return std::optional<Value>();
  }
  const std::string* text = args.items[0].as_string();
  const std::string* encoding = args.items[1].as_string();
  const bool is_latin1 =
      encoding != nullptr && (*encoding == "latin1" || *encoding == "latin-1");
  if (text == nullptr || !is_latin1) {
    return std::optional<Value>();
  }
  auto bytes = latin1_from_utf8(*text);
  return bytes ? only(Bytes{*std::move(bytes)}) : std::optional<Value>();
}

CallResult call_bytes(const Tuple& args) {
  return args.items.empty() ? only(Bytes{}) : std::optional<Value>();
}

CallResult call_optimized_module(const Tuple& args) {
  if (args.items.size() != 2 || args.items[0].as_object() == nullptr) {
    return std::optional<Value>();
  }
  Value state = Value::dict(
      {{"_parameters", Value::dict({})},
       {"_buffers", Value::dict({})},
       {"_modules", Value::dict({{"_orig_mod", args.items[0]}})}});
  return only(Object{
      .global = "torch._dynamo.eval_frame.OptimizedModule",
      .args = std::make_shared<Value>(args),
      .state = std::make_shared<Value>(std::move(state))});
}

CallResult call_graph_module(const Tuple& args) {
  if (args.items.empty() || args.items[0].find("_modules") == nullptr) {
    return std::optional<Value>();
  }
  return only(Object{
      .global = "torch.fx.graph_module.reduce_graph_module",
      .args = std::make_shared<Value>(args),
      .state = std::make_shared<Value>(args.items[0])});
}

CallResult call_restore_type_tag(const Tuple& args) {
  const bool is_tagged =
      args.items.size() == 2 && args.items[1].as_string() != nullptr;
  return is_tagged ? std::optional<Value>(args.items[0])
                   : std::optional<Value>();
}

CallResult call_typed_list(const Tuple& args) {
  const bool is_list =
      args.items.size() == 1 && args.items[0].as_list() != nullptr;
  return is_list ? std::optional<Value>(args.items[0]) : std::optional<Value>();
}

} // namespace lockstep::ckpt
