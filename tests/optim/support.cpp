// SPDX-License-Identifier: BSD-3-Clause
#include "tests/optim/support.h"

#include <cstring>
#include <functional>

#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::test {

namespace {

const std::vector<std::vector<std::int64_t>> kShapes =
    {{8, 3, 3, 3}, {16, 8, 3, 3}, {}, {300, 300}, {7}, {5, 2}};

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {static_cast<const char*>(flat.data_ptr()), flat.nbytes()};
}

std::string repr_items(const std::vector<ckpt::Value>& items) {
  std::vector<std::string> parts;
  parts.reserve(items.size());
  for (const ckpt::Value& item : items) {
    parts.push_back(repr(item));
  }
  return join(parts, ", ");
}

std::string repr_tensor(const ckpt::Tensor& tensor) {
  const at::Tensor value = to_tensor(tensor);
  std::vector<std::string> sizes;
  for (const std::int64_t size : value.sizes()) {
    sizes.push_back(format("{}", size));
  }
  return format(
      "tensor({}, [{}], {})",
      std::string(c10::toString(value.scalar_type())),
      join(sizes, ", "),
      std::hash<std::string>()(bytes_of(value)));
}

std::string repr_dict(const ckpt::Dict& dict) {
  std::vector<std::string> parts;
  parts.reserve(dict.items.size());
  for (const auto& [key, value] : dict.items) {
    parts.push_back(repr(key) + ": " + repr(value));
  }
  const std::string text = "{" + join(parts, ", ") + "}";
  return dict.kind == ckpt::Dict::Kind::kCounter ? "Counter(" + text + ")"
                                                 : text;
}

} // namespace

std::vector<at::Tensor> make_params() {
  torch::manual_seed(1);
  std::vector<at::Tensor> params;
  params.reserve(kShapes.size());
  for (const auto& shape : kShapes) {
    params.push_back(torch::randn(shape));
  }
  params[1] = params[1].contiguous(at::MemoryFormat::ChannelsLast);
  for (at::Tensor& param : params) {
    param.requires_grad_();
  }
  return params;
}

void set_grads(const std::vector<at::Tensor>& params, int step) {
  torch::manual_seed(100 + static_cast<std::uint64_t>(step));
  for (std::size_t i = 0; i < params.size(); ++i) {
    at::Tensor grad = torch::randn(params[i].sizes());
    if (i == 1) {
      grad = grad.contiguous(at::MemoryFormat::ChannelsLast);
    }
    const bool has_grad = i != 5 && (i != 4 || step > 0);
    params[i].mutable_grad() = has_grad ? grad : at::Tensor();
  }
}

std::string repr(const ckpt::Value& value) {
  if (value.as_bool() != nullptr) {
    return *value.as_bool() ? "True" : "False";
  }
  if (value.as_int() != nullptr) {
    return format("{}", *value.as_int());
  }
  if (value.as_float() != nullptr) {
    return shortest(*value.as_float());
  }
  if (value.as_string() != nullptr) {
    return "'" + *value.as_string() + "'";
  }
  if (value.as_list() != nullptr) {
    return "[" + repr_items(value.as_list()->items) + "]";
  }
  if (value.as_tuple() != nullptr) {
    return "(" + repr_items(value.as_tuple()->items) + ")";
  }
  if (value.as_dict() != nullptr) {
    return repr_dict(*value.as_dict());
  }
  if (value.as_tensor() != nullptr) {
    return repr_tensor(*value.as_tensor());
  }
  return value.is_none() ? "None" : std::string(value.type_name());
}

ckpt::Value without(const ckpt::Value& value, std::string_view key) {
  if (const ckpt::Dict* dict = value.as_dict()) {
    ckpt::Dict copy = {.kind = dict->kind};
    for (const auto& [name, item] : dict->items) {
      if (name.as_string() == nullptr || *name.as_string() != key) {
        copy.items.emplace_back(name, without(item, key));
      }
    }
    return copy;
  }
  if (const ckpt::List* list = value.as_list()) {
    ckpt::List copy;
    for (const ckpt::Value& item : list->items) {
      copy.items.push_back(without(item, key));
    }
    return copy;
  }
  return value;
}

ckpt::Value with_state(
    const ckpt::Value& saved,
    std::string_view key,
    const ckpt::Value& item) {
  ckpt::Value copy = without(saved, "");
  ckpt::Value entry = *copy.find("state")->find(0);
  entry.set(key, item);
  return copy;
}

ckpt::Value group_of(const ckpt::Value& saved, std::size_t index) {
  return saved.find("param_groups")->as_list()->items[index];
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         bytes_of(a) == bytes_of(b);
}

} // namespace lockstep::test
