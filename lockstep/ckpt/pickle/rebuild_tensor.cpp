// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/rebuild_tensor.h"

#include <limits>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kMaxDimensions = 64;

Error bad_type(std::string message) {
  return pickle_error(ErrorCode::kCorrupt, "E_PICKLE_TYPE", std::move(message));
}

Error bad_view(std::string_view detail, std::string message) {
  return pickle_error(ErrorCode::kCorrupt, detail, std::move(message));
}

Error wrong_arguments(std::string_view function) {
  return bad_type(format("arguments of {} have unknown types", function));
}

// Smallest and largest number of arguments, then storage, offset, size,
// stride, as all versions begin.
Result<Tensor> read_view(const Tuple& args, std::size_t least) {
  if (args.items.size() < least) {
    return bad_type(format(
        "tensor with too few arguments; expected {}, got {}",
        least,
        args.items.size()));
  }
  Tensor tensor;
  tensor.storage = storage_of(args.items[0]);
  if (tensor.storage == nullptr) {
    return bad_type("first argument of a tensor is no storage");
  }
  tensor.dtype = tensor.storage->dtype;
  const std::int64_t* offset = args.items[1].as_int();
  auto sizes = integers_of(args.items[2]);
  auto strides = integers_of(args.items[3]);
  if (offset == nullptr || !sizes || !strides) {
    return bad_view("E_TYPE", "offset, size or stride of a tensor are no ints");
  }
  tensor.offset = *offset;
  tensor.sizes = *std::move(sizes);
  tensor.strides = *std::move(strides);
  return tensor;
}

Status read_requires_grad(Tensor& tensor, const Value& value) {
  const bool* requires_grad = value.as_bool();
  if (requires_grad == nullptr) {
    return bad_view("E_TYPE", "requires_grad of a tensor is no bool");
  }
  tensor.requires_grad = *requires_grad;
  return {};
}

Status read_metadata(Tensor& tensor, const Value& value) {
  if (value.is_none()) {
    return {};
  }
  if (value.as_dict() == nullptr) {
    return bad_type("metadata of a tensor is no dict");
  }
  const auto flag = [&value](std::string_view key) {
    const Value* found = value.find(key);
    const bool* on = found == nullptr ? nullptr : found->as_bool();
    return on != nullptr && *on;
  };
  tensor.is_conj = flag("conj");
  tensor.is_neg = flag("neg");
  return {};
}

CallResult finish(Tensor tensor) {
  LOCKSTEP_TRY(check_view(tensor));
  return std::optional<Value>(std::move(tensor));
}

// The tensor as a parameter: a node of its own, as in Python.
CallResult parameter_from(const Value& data, bool requires_grad) {
  const Tensor* tensor = data.as_tensor();
  if (tensor == nullptr) {
    return std::optional<Value>(); // a kind of tensor kept as an object
  }
  Tensor parameter = *tensor;
  parameter.is_parameter = true;
  parameter.requires_grad = requires_grad;
  return std::optional<Value>(std::move(parameter));
}

bool is_global(const Value& value, std::string_view name) {
  const Object* object = value.as_object();
  return object != nullptr && is_bare_global(*object) && object->global == name;
}

} // namespace

CallResult rebuild_tensor(const Tuple& args) {
  LOCKSTEP_ASSIGN(Tensor tensor, read_view(args, 4));
  return finish(std::move(tensor));
}

CallResult rebuild_tensor_v2(const Tuple& args) {
  LOCKSTEP_ASSIGN(Tensor tensor, read_view(args, 6));
  LOCKSTEP_TRY(read_requires_grad(tensor, args.items[4]));
  if (args.items.size() > 6) {
    LOCKSTEP_TRY(read_metadata(tensor, args.items[6]));
  }
  return finish(std::move(tensor));
}

CallResult rebuild_tensor_v3(const Tuple& args) {
  LOCKSTEP_ASSIGN(Tensor tensor, read_view(args, 7));
  LOCKSTEP_TRY(read_requires_grad(tensor, args.items[4]));
  const auto* dtype = std::get_if<DTypeValue>(&args.items[6].data());
  if (dtype == nullptr) {
    return std::optional<Value>(); // a dtype we do not know
  }
  tensor.dtype = dtype->dtype;
  if (args.items.size() > 7) {
    LOCKSTEP_TRY(read_metadata(tensor, args.items[7]));
  }
  return finish(std::move(tensor));
}

CallResult rebuild_parameter(const Tuple& args) {
  const bool* requires_grad =
      args.items.size() < 3 ? nullptr : args.items[1].as_bool();
  if (requires_grad == nullptr) {
    return wrong_arguments("_rebuild_parameter");
  }
  return parameter_from(args.items[0], *requires_grad);
}

CallResult rebuild_parameter_with_state(const Tuple& args) {
  const bool* requires_grad =
      args.items.size() != 4 ? nullptr : args.items[1].as_bool();
  if (requires_grad == nullptr) {
    return wrong_arguments("_rebuild_parameter_with_state");
  }
  LOCKSTEP_ASSIGN(auto value, parameter_from(args.items[0], *requires_grad));
  if (value) {
    value->as_tensor()->attributes = std::make_shared<Value>(args.items[3]);
  }
  return value;
}

CallResult call_parameter(const Tuple& args) {
  if (args.items.empty() || args.items.size() > 2) {
    return std::optional<Value>();
  }
  bool requires_grad = true;
  if (args.items.size() == 2) {
    const bool* given = args.items[1].as_bool();
    if (given == nullptr) {
      return wrong_arguments("Parameter");
    }
    requires_grad = *given;
  }
  return parameter_from(args.items[0], requires_grad);
}

CallResult rebuild_from_type(const Tuple& args) {
  if (args.items.size() != 4) {
    return wrong_arguments("_rebuild_from_type_v2");
  }
  const Object* function = args.items[0].as_object();
  const Tuple* inner = args.items[2].as_tuple();
  const bool is_plain =
      is_global(args.items[1], "torch.Tensor") ||
      is_global(args.items[1], "torch._tensor.Tensor") ||
      is_global(args.items[1], "torch.nn.parameter.Parameter");
  if (!is_plain || inner == nullptr || function == nullptr ||
      !is_bare_global(*function) ||
      find_global(function->global).kind != GlobalKind::kCallable) {
    return std::optional<Value>(); // a subclass: kept as an object
  }
  LOCKSTEP_ASSIGN(
      Value made,
      call_global(function->global, std::make_shared<Tuple>(*inner)));
  Tensor* tensor = made.as_tensor();
  if (tensor == nullptr) {
    return std::optional<Value>();
  }
  tensor->attributes = std::make_shared<Value>(args.items[3]);
  return std::optional<Value>(std::move(made));
}

Status check_view(const Tensor& tensor) {
  const std::size_t rank = tensor.sizes.size();
  if (rank != tensor.strides.size() || rank > kMaxDimensions) {
    return bad_view(
        "E_RANK",
        format(
            "tensor has {} sizes and {} strides; expected as many, at most {}",
            rank,
            tensor.strides.size(),
            kMaxDimensions));
  }
  const auto element = static_cast<std::int64_t>(dtype_info(tensor.dtype).size);
  bool negative = tensor.offset < 0;
  bool overflow = false;
  bool empty = false;
  std::int64_t bytes = element; // of all elements, empty dimensions aside
  std::int64_t last = tensor.offset; // element behind the last one seen
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t size = tensor.sizes[i];
    const std::int64_t stride = tensor.strides[i];
    negative = negative || size < 0 || stride < 0;
    empty = empty || size == 0;
    if (negative || size == 0) {
      continue;
    }
    std::int64_t step = 0;
    overflow = __builtin_mul_overflow(bytes, size, &bytes) ||
               __builtin_mul_overflow(size - 1, stride, &step) ||
               __builtin_add_overflow(last, step, &last) || overflow;
  }
  if (negative) {
    return bad_view("E_VIEW_NEGATIVE", "tensor with negative size or offset");
  }
  std::int64_t need = 0;
  overflow = overflow || __builtin_add_overflow(last, 1, &last) ||
             __builtin_mul_overflow(last, element, &need);
  if (overflow) {
    return bad_view("E_OVERFLOW", "size of a tensor does not fit 64 bits");
  }
  if (!empty && static_cast<std::uint64_t>(need) > tensor.storage->nbytes) {
    return bad_view(
        "E_VIEW_BOUNDS",
        format(
            "tensor reaches past its storage; expected at most {} bytes, got "
            "{}",
            tensor.storage->nbytes,
            need));
  }
  return {};
}

} // namespace lockstep::ckpt
