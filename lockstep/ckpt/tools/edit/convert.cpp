// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/tools/edit/float_cast.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kMadeBlockBytes = 128 << 10;

class CastSource final : public internal::MadeSource {
 public:
  CastSource(std::shared_ptr<Storage> inner, DType from, DType to)
      : inner_(std::move(inner)), from_(from), to_(to) {}

  Status stream(const BlockVisitor& visit) override {
    Scratch scratch;
    return inner_->source->stream(
        [&](ByteSpan block) { return cast_block(block, scratch, visit); });
  }

  [[nodiscard]] bool has_overflowed() const {
    return has_overflowed_;
  }

 private:
  struct Scratch {
    // Of an element that a block cuts.
    std::vector<std::byte> rest = {};
    std::vector<std::byte> out = {};
  };

  Status
  cast_block(ByteSpan block, Scratch& scratch, const BlockVisitor& visit) {
    const std::size_t width = dtype_info(from_).size;
    std::vector<std::byte>& rest = scratch.rest;
    while (!block.empty()) {
      if (rest.empty() && block.size() >= width) {
        const std::size_t whole =
            std::min(block.size(), kMadeBlockBytes) / width * width;
        LOCKSTEP_TRY(cast(block.first(whole), scratch.out, visit));
        block = block.subspan(whole);
        continue;
      }
      const auto part =
          block.first(std::min(block.size(), width - rest.size()));
      rest.insert(rest.end(), part.begin(), part.end());
      block = block.subspan(part.size());
      if (rest.size() == width) {
        LOCKSTEP_TRY(cast(rest, scratch.out, visit));
        rest.clear();
      }
    }
    return {};
  }

  Status
  cast(ByteSpan in, std::vector<std::byte>& out, const BlockVisitor& visit) {
    out.resize(in.size() / dtype_info(from_).size * dtype_info(to_).size);
    if (internal::cast_floats(in, from_, out, to_)) {
      has_overflowed_ = true;
    }
    return visit(out);
  }

  std::shared_ptr<Storage> inner_;
  DType from_;
  DType to_;
  // Several threads may read.
  std::atomic<bool> has_overflowed_ = false;
};

std::shared_ptr<StorageSource>
cast_source(std::shared_ptr<Storage> inner, DType from, DType to) {
  return std::make_shared<CastSource>(std::move(inner), from, to);
}

bool has_overflowed(const StorageSource& source) {
  const auto* cast = dynamic_cast<const CastSource*>(&source);
  return cast != nullptr && cast->has_overflowed();
}

std::string tag_of(const Tensor& tensor) {
  return format(
      "{} {}",
      dtype_info(tensor.dtype).name,
      escape(tensor.storage->location, 20));
}

using TensorSet = std::unordered_set<const Tensor*>;

// The `step` of each parameter in the state of an optimizer, wherever else it
// may lie.
TensorSet step_counters(const Value& root) {
  TensorSet counters;
  NodeWalk().run(root, [&counters](const Value& node) {
    const Value* step = node.as_dict() == nullptr ? nullptr : node.find("step");
    const Tensor* tensor = step == nullptr ? nullptr : step->as_tensor();
    if (tensor != nullptr && tensor->sizes.empty()) {
      counters.insert(tensor);
    }
    return true;
  });
  return counters;
}

class Converter final : public TreeCopy {
 public:
  explicit Converter(ConvertOptions options, TensorSet counters = {})
      : TreeCopy("ckpt.convert"),
        options_(std::move(options)),
        budget_(options_.max_expanded_bytes),
        counters_(std::move(counters)) {
    if (options_.dtype) {
      ConvertOptions rest = options_;
      rest.dtype.reset();
      places_ = std::make_unique<Converter>(std::move(rest));
    }
  }

  // `copy`, whose error names the tensor.
  Result<Value> run(const Value& root) {
    auto made = copy(root);
    const std::string name = made ? "" : first_tensor_of(root, last_);
    return name.empty()
               ? std::move(made)
               : about(std::move(made), format("tensor '{}'", escape(name)));
  }

  // What stands in the copy for a tensor that was copied.
  [[nodiscard]] const Tensor& converted(const Tensor& tensor) const {
    const bool is_counter = places_ && counters_.contains(&tensor);
    const Value* made = (is_counter ? *places_ : *this).copy_of(&tensor);
    LOCKSTEP_CHECK(made != nullptr);
    return *made->as_tensor();
  }

 private:
  Result<Value> copy_child(const Child& child) override {
    const bool keeps_type =
        places_ != nullptr && (child.slot == ChildSlot::kQuantizer ||
                               counters_.contains(child.value->as_tensor()));
    return keeps_type ? places_->copy(*child.value) : copy(*child.value);
  }

  Status change(Value& copy) override {
    if (Tensor* tensor = copy.as_tensor()) {
      return tensor->storage == nullptr ? Status() : convert_tensor(*tensor);
    }
    if (storage_of(copy) != nullptr) {
      convert_class(copy.as_object()->global);
    } else if (const Object* call = copy.as_object(); call && call->args) {
      convert_call(call->global, *call->args);
    }
    return {};
  }

  // The class of a storage says its type.
  void convert_class(std::string& name) const {
    const auto dtype = storage_class_dtype(name);
    if (options_.dtype && dtype && internal::is_castable(*dtype)) {
      name = storage_class_of(name, *options_.dtype);
    }
  }

  // Type and device of a tensor that is no view of a storage are arguments of
  // the call that makes it.
  void convert_call(std::string_view function, Value& args) const {
    Tuple* parts = args.as_tuple();
    if (parts == nullptr) {
      return;
    }
    constexpr std::size_t kTypedParts = 4; // function, class, arguments, state
    if (function == names::kRebuildFromType &&
        parts->items.size() == kTypedParts &&
        parts->items[0].as_object() != nullptr) {
      convert_call(parts->items[0].as_object()->global, parts->items[2]);
    }
    const bool is_device = function == names::kRebuildDevice ||
                           function == names::kRebuildDeviceFromNumpy;
    if (!is_device && function != names::kRebuildMeta) {
      return;
    }
    for (Value& part : parts->items) {
      const DTypeValue* dtype = part.as_dtype();
      if (dtype != nullptr && options_.dtype &&
          internal::is_castable(dtype->dtype)) {
        part = DTypeValue{*options_.dtype};
      } else if (
          part.as_string() != nullptr && !options_.map_location.empty()) {
        part = options_.map_location;
      }
    }
  }

  Status convert_tensor(Tensor& tensor) {
    const Tensor old = tensor;
    last_ = old.storage.get();
    const bool is_part = contiguous_bytes(old) != old.storage->nbytes;
    if (options_.clone_views && is_part) {
      LOCKSTEP_TRY(budget_.add(old));
      Tensor stored = old; // the flags stay with the tensor
      stored.is_conj = false;
      stored.is_neg = false;
      tensor.storage = std::make_shared<Storage>(Storage{
          .nbytes = contiguous_bytes(old),
          .location = old.storage->location,
          .source = std::make_shared<internal::GatheredSource>(stored),
          .dtype = old.dtype});
      tensor.offset = 0;
      tensor.strides = row_major_strides(old.sizes);
      cloned_.push_back(tensor.storage);
    }
    LOCKSTEP_ASSIGN(
        tensor.storage,
        convert_storage(tensor.storage, tensor.dtype));
    if (options_.dtype && internal::is_castable(tensor.dtype)) {
      tensor.dtype = *options_.dtype;
    }
    return {};
  }

  struct Known {
    std::shared_ptr<Storage> storage = {};
    DType view = DType::kFloat32;
  };

  // `view`: type of the tensor that looks at the storage.
  Result<std::shared_ptr<Storage>> convert_storage(
      const std::shared_ptr<Storage>& old,
      DType view) {
    const bool casts = options_.dtype && internal::is_castable(view) &&
                       *options_.dtype != view;
    const auto found = storages_.find(old.get());
    if (found != storages_.end()) {
      const DType before = found->second.view;
      const bool cast_before = options_.dtype &&
                               internal::is_castable(before) &&
                               *options_.dtype != before;
      if ((casts || cast_before) && before != view) {
        return mixed(before, view);
      }
      return found->second.storage;
    }
    auto storage = std::make_shared<Storage>(*old);
    if (!options_.map_location.empty() &&
        storage->location != options_.map_location) {
      storage->location = options_.map_location;
      storage->location_text = nullptr;
    }
    if (casts) {
      const std::size_t width = dtype_info(view).size;
      if (old->nbytes % width != 0) {
        return mixed(old->dtype, view);
      }
      storage->nbytes = old->nbytes / width * dtype_info(*options_.dtype).size;
      storage->dtype = *options_.dtype;
      storage->source = cast_source(old, view, *options_.dtype);
    }
    storages_.emplace(old.get(), Known{.storage = storage, .view = view});
    return storage;
  }

  static Error mixed(DType one, DType other) {
    return {
        .code = ErrorCode::kUnsupported,
        .op = "ckpt.convert",
        .message = format(
            "tensors of {} and {} view one storage, so its type cannot change",
            dtype_info(one).name,
            dtype_info(other).name),
        .hint = "ConvertOptions::clone_views gives each a storage of its own",
        .detail = "E_MIXED_VIEWS"};
  }

  ConvertOptions options_;
  ExpansionBudget budget_;
  // That of the tensor that was looked at last.
  const Storage* last_ = nullptr;
  TensorSet counters_;
  // For what keeps its type: counters, and the scales of quantized tensors.
  // Null if all does.
  std::unique_ptr<Converter> places_;
  std::unordered_map<const Storage*, Known> storages_;
  // Keeps the addresses of `storages_` alive.
  std::vector<std::shared_ptr<Storage>> cloned_;
};

bool is_float(DType dtype) {
  return dtype_info(dtype).name.find("float") != std::string_view::npos;
}

// Fills in what `converter` made of the tensors of `before`.
Status note_changes(
    const Value& before,
    const Converter& converter,
    std::optional<DType> dtype,
    Converted& result) {
  return for_each_tensor(
      before,
      [&](const std::string& name, const Tensor& old) {
        const Tensor& made = converter.converted(old);
        if (dtype && is_float(made.dtype) && made.dtype != *dtype) {
          result.kept.push_back(name);
        }
        TensorChange row{
            .name = name,
            .from = tag_of(old),
            .to = tag_of(made),
            .from_bytes = old.storage->nbytes,
            .to_bytes = made.storage->nbytes,
            .storage = made.storage};
        if (row.from != row.to || row.from_bytes != row.to_bytes) {
          result.changes.push_back(std::move(row));
        }
      });
}

} // namespace

Status check_map_location(std::string_view location) {
  return location != "meta"
             ? Status()
             : Status(Error{
                   .code = ErrorCode::kInvalidArgument,
                   .op = "ckpt.convert",
                   .message = "PyTorch would not read the bytes of tensors on "
                              "'meta'",
                   .hint = "name a device that has memory, such as cpu"});
}

Result<Converted> convert_tensors(
    const Value& root,
    const ConvertOptions& options) {
  if (options.dtype && !internal::is_castable(*options.dtype)) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "ckpt.convert",
        .message = format(
            "weights cannot be converted to {}; expected float64, float32, "
            "float16 or "
            "bfloat16",
            dtype_info(*options.dtype).name)};
  }
  LOCKSTEP_TRY(check_map_location(options.map_location));
  Converter converter(
      options,
      options.dtype ? step_counters(root) : TensorSet());
  Converted result;
  LOCKSTEP_ASSIGN(result.root, converter.run(root));
  LOCKSTEP_TRY(note_changes(root, converter, options.dtype, result));
  return result;
}

std::vector<std::string> overflowed(const Converted& converted) {
  std::vector<std::string> names;
  for (const TensorChange& change : converted.changes) {
    if (change.storage->source && has_overflowed(*change.storage->source)) {
      names.push_back(change.name);
    }
  }
  return names;
}

} // namespace lockstep::ckpt
