// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/rebuild_tensor.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/names.h"
#include "lockstep/ckpt/pickle/python_state.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

Error bad_type(std::string message) {
  return corrupt_file("E_PICKLE_TYPE", std::move(message));
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
    return bad_type("first argument of a tensor is not a storage");
  }
  tensor.dtype = tensor.storage->dtype;
  const std::int64_t* offset = args.items[1].as_int();
  auto sizes = integers_of(args.items[2]);
  auto strides = integers_of(args.items[3]);
  if (offset == nullptr || !sizes || !strides) {
    return corrupt_file(
        "E_TYPE",
        "offset, size or stride of a tensor are not ints");
  }
  tensor.offset = *offset;
  tensor.sizes = *std::move(sizes);
  tensor.strides = *std::move(strides);
  return tensor;
}

Status read_requires_grad(Tensor& tensor, const Value& value) {
  const bool* requires_grad = value.as_bool();
  if (requires_grad == nullptr) {
    return corrupt_file("E_TYPE", "requires_grad of a tensor is not a bool");
  }
  tensor.requires_grad = *requires_grad;
  return {};
}

Status read_metadata(Tensor& tensor, const Value& value) {
  if (value.is_none()) {
    return {};
  }
  if (value.as_dict() == nullptr) {
    return bad_type("metadata of a tensor is not a dict");
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

// Python sets them one by one, beside what the tensor has.
Status add_attributes(Tensor& tensor, const Value& state) {
  if (tensor.attributes == nullptr) {
    tensor.attributes = std::make_shared<Value>(state);
    return {};
  }
  LOCKSTEP_ASSIGN(Value joined, joined_state(*tensor.attributes, state));
  tensor.attributes = std::make_shared<Value>(std::move(joined));
  return {};
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

// How many calls of `rebuild_from_type` are the function of one another. Their
// copies are counted to the second (`bytes_of_call`); Python writes one.
constexpr int kMostTypedLevels = 2;

int typed_levels(const Tuple& args) {
  int levels = 1;
  for (const Tuple* at = &args; at != nullptr && at->items.size() == 4;
       at = at->items[2].as_tuple()) {
    const Object* function = at->items[0].as_object();
    const NameRow* row =
        function == nullptr ? nullptr : find_name(function->global);
    if (row == nullptr || row->call != rebuild_from_type) {
      break;
    }
    ++levels;
  }
  return levels;
}

// Classes whose attributes are all that is special.
constexpr std::array<std::string_view, 3> kPlainClasses{
    "torch.Tensor",
    "torch._tensor.Tensor",
    "torch.nn.parameter.Parameter"};

// LibTorch writes a layout as the number of c10::Layout.
struct NativeLayout {
  std::int64_t number = 0;
  const char* name = "";
  std::size_t parts = 0;
};
constexpr std::array kNativeLayouts{
    NativeLayout{1, "torch.sparse_coo", 2},
    NativeLayout{2, "torch.sparse_csr", 3},
    NativeLayout{4, "torch.sparse_csc", 3},
    NativeLayout{5, "torch.sparse_bsr", 3},
    NativeLayout{6, "torch.sparse_bsc", 3},
};

} // namespace

Status keep_hooks(Tensor& tensor, const Value& hooks) {
  if (child_count(hooks) == 0) {
    return {};
  }
  return add_attributes(tensor, Value::dict({{"_backward_hooks", hooks}}));
}

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
  LOCKSTEP_TRY(keep_hooks(tensor, args.items[5]));
  return finish(std::move(tensor));
}

CallResult rebuild_tensor_v3(const Tuple& args) {
  LOCKSTEP_ASSIGN(Tensor tensor, read_view(args, 7));
  LOCKSTEP_TRY(read_requires_grad(tensor, args.items[4]));
  const DTypeValue* dtype = args.items[6].as_dtype();
  if (dtype == nullptr) {
    return std::optional<Value>(); // a dtype we do not know
  }
  tensor.dtype = dtype->dtype;
  if (args.items.size() > 7) {
    LOCKSTEP_TRY(read_metadata(tensor, args.items[7]));
  }
  LOCKSTEP_TRY(keep_hooks(tensor, args.items[5]));
  return finish(std::move(tensor));
}

CallResult rebuild_parameter(const Tuple& args) {
  const bool* requires_grad =
      args.items.size() < 3 ? nullptr : args.items[1].as_bool();
  if (requires_grad == nullptr) {
    return wrong_arguments("_rebuild_parameter");
  }
  LOCKSTEP_ASSIGN(auto value, parameter_from(args.items[0], *requires_grad));
  if (value) {
    LOCKSTEP_TRY(keep_hooks(*value->as_tensor(), args.items[2]));
  }
  return value;
}

CallResult rebuild_parameter_with_state(const Tuple& args) {
  const bool* requires_grad =
      args.items.size() != 4 ? nullptr : args.items[1].as_bool();
  if (requires_grad == nullptr) {
    return wrong_arguments("_rebuild_parameter_with_state");
  }
  LOCKSTEP_ASSIGN(auto value, parameter_from(args.items[0], *requires_grad));
  if (value) {
    // A parameter shares the data of what it is made of, nothing else.
    value->as_tensor()->attributes = nullptr;
    LOCKSTEP_TRY(keep_hooks(*value->as_tensor(), args.items[2]));
    LOCKSTEP_TRY(add_attributes(*value->as_tensor(), args.items[3]));
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
  const Object* type = args.items[1].as_object();
  if (type == nullptr || !is_bare_global(*type) || inner == nullptr ||
      function == nullptr || !is_bare_global(*function) ||
      find_global(function->global).kind != GlobalKind::kCallable) {
    return std::optional<Value>(); // no strided tensor: kept as an object
  }
  if (typed_levels(args) > kMostTypedLevels) {
    return read_error(
        ErrorCode::kUnsupported,
        "E_PICKLE_TYPE",
        format(
            "a tensor with {} calls of _rebuild_from_type_v2 in each other; "
            "expected at most {}",
            typed_levels(args),
            kMostTypedLevels));
  }
  LOCKSTEP_ASSIGN(Value made, call_global(function->global, args.items[2]));
  Tensor* tensor = made.as_tensor();
  if (tensor == nullptr) {
    return std::optional<Value>();
  }
  LOCKSTEP_TRY(add_attributes(*tensor, args.items[3]));
  if (std::ranges::find(kPlainClasses, type->global) == kPlainClasses.end()) {
    tensor->class_name = type->global;
  }
  return std::optional<Value>(std::move(made));
}

CallResult rebuild_qtensor(const Tuple& args) {
  LOCKSTEP_ASSIGN(Tensor tensor, read_view(args, 7));
  LOCKSTEP_TRY(read_requires_grad(tensor, args.items[5]));
  tensor.quantizer = std::make_shared<Value>(args.items[4]);
  LOCKSTEP_ASSIGN([[maybe_unused]] auto checked, read_quantizer(tensor));
  LOCKSTEP_TRY(keep_hooks(tensor, args.items[6]));
  return finish(std::move(tensor));
}

CallResult rebuild_sparse(const Tuple& args) {
  const auto& items = args.items;
  const std::int64_t* layout = items.empty() ? nullptr : items[0].as_int();
  if (layout == nullptr) {
    return std::optional<Value>();
  }
  const auto* row =
      std::ranges::find(kNativeLayouts, *layout, &NativeLayout::number);
  constexpr std::size_t kOthers = 4; // layout, size, requires_grad, hooks
  if (row == kNativeLayouts.end() || items.size() != kOthers + row->parts) {
    return wrong_arguments("_rebuild_sparse_tensor");
  }
  Tuple data;
  for (std::size_t i = 0; i < row->parts; ++i) {
    data.items.push_back(items[3 + i]);
  }
  auto sizes = integers_of(items[1]);
  if (!sizes) {
    return wrong_arguments("_rebuild_sparse_tensor");
  }
  data.items.emplace_back(Size{*std::move(sizes)});
  Value name = Object{
      .global = "torch.serialization._get_layout",
      .args = std::make_shared<Value>(Value::tuple({row->name}))};
  return std::optional<Value>(Object{
      .global = "torch._utils._rebuild_sparse_tensor",
      .args = std::make_shared<Value>(
          Value::tuple({std::move(name), std::move(data)}))});
}

} // namespace lockstep::ckpt
