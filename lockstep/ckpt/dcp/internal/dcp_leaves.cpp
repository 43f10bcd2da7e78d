// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/dcp/internal/dcp_leaves.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/flatten.h"
#include "lockstep/ckpt/internal/save_error.h"
#include "lockstep/ckpt/tensor_bytes.h"
#include "lockstep/ckpt/value_walk.h"

namespace lockstep::ckpt::internal {
namespace {

// The reader's bound on a path.
constexpr std::size_t kMaxLeafDepth = 200;
constexpr std::uint64_t kMaxVisits = 20'000'000;

bool is_plain_tensor(const Value& value) {
  const Tensor* tensor = value.as_tensor();
  const bool is_quantized = tensor != nullptr &&
                            tensor->dtype >= DType::kQInt8 &&
                            tensor->dtype <= DType::kQUInt2x4;
  return tensor != nullptr && !is_quantized &&
         (tensor->numel() == 0 || has_bytes(*tensor));
}

class LeafWalk {
 public:
  Result<std::vector<DcpLeaf>> run(const Value& root) {
    if (root.as_dict() == nullptr && !is_module(root)) {
      return save_error(
          ErrorCode::kInvalidArgument,
          "E_NOT_TENSOR",
          format(
              "a DCP folder holds a dict; got a value of type {}",
              root.type_name()));
    }
    LOCKSTEP_TRY(walk(root));
    return std::move(leaves_);
  }

 private:
  Status walk(const Value& value) {
    if (path_.size() > kMaxLeafDepth) {
      return save_error(
          ErrorCode::kUnsafe,
          "E_DEPTH",
          format("'{}' is nested too deeply", escape(name())));
    }
    const bool entered = is_entered(value, 0);
    if (visits_ > kMaxVisits) {
      return save_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("'{}' expands without end", escape(name())));
    }
    if (const Dict* dict = value.as_dict()) {
      for (const auto& [key, child] : dict->items) {
        path_.emplace_back(std::in_place_type<std::string>, key_text(key));
        LOCKSTEP_TRY(walk_last(child));
      }
      return {};
    }
    if (is_module(value)) {
      return walk_module(value);
    }
    if (entered) {
      const List& list = *value.as_list();
      for (std::size_t i = 0; i < list.items.size(); ++i) {
        path_.emplace_back(
            std::in_place_type<std::int64_t>,
            static_cast<std::int64_t>(i));
        LOCKSTEP_TRY(walk_last(list.items[i]));
      }
      return {};
    }
    return add(value);
  }

  // PyTorch enters a list for tensors, dicts and lists that it would enter.
  // Shared lists are looked at again each time: the visits are counted.
  bool is_entered(const Value& value, std::size_t depth) {
    if (++visits_ > kMaxVisits) {
      return false;
    }
    if (value.as_dict() != nullptr || is_module(value)) {
      return true;
    }
    const List* list = value.as_list();
    return list != nullptr && depth < kMaxLeafDepth &&
           std::ranges::any_of(
               list->items,
               [this, depth](const Value& element) {
                 return element.as_tensor() != nullptr ||
                        is_entered(element, depth + 1);
               });
  }

  // Takes the last step of the path away again.
  Status walk_last(const Value& value) {
    Status status = walk(value);
    path_.pop_back();
    return status;
  }

  Status walk_module(const Value& module) {
    LOCKSTEP_ASSIGN(const FlatState flat, flatten(module));
    for (const FlatTensor& entry : flat.tensors) {
      path_.emplace_back(entry.name);
      Status status = add(std::make_shared<Tensor>(*entry.tensor));
      path_.pop_back();
      LOCKSTEP_TRY(status);
    }
    return {};
  }

  Status add(const Value& value) {
    DcpLeaf leaf{.value = value};
    leaf.item.name = name();
    leaf.item.path = path_;
    if (!names_.insert(leaf.item.name).second) {
      return save_error(
          ErrorCode::kInvalidArgument,
          "E_SAME_NAME",
          format("'{}' is the name of two values", escape(leaf.item.name)));
    }
    if (is_plain_tensor(value)) {
      const Tensor& tensor = *value.as_tensor();
      leaf.item.is_tensor = true;
      leaf.item.dtype = tensor.dtype;
      leaf.item.requires_grad = tensor.requires_grad;
      leaf.item.sizes = tensor.sizes;
      leaf.item.chunks.push_back(
          {.offsets = std::vector<std::int64_t>(tensor.sizes.size(), 0),
           .sizes = tensor.sizes});
    }
    leaves_.push_back(std::move(leaf));
    return {};
  }

  [[nodiscard]] std::string name() const {
    std::string joined;
    for (const DcpStep& step : path_) {
      const std::string* key = std::get_if<std::string>(&step);
      joined += joined.empty() && &step == path_.data() ? "" : ".";
      joined +=
          key != nullptr ? *key : std::to_string(std::get<std::int64_t>(step));
    }
    return joined;
  }

  std::uint64_t visits_ = 0;
  std::vector<DcpStep> path_;
  std::vector<DcpLeaf> leaves_;
  std::set<std::string> names_;
};

} // namespace

Result<std::vector<DcpLeaf>> dcp_leaves(const Value& root) {
  return LeafWalk().run(root);
}

} // namespace lockstep::ckpt::internal
