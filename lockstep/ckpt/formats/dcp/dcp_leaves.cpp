// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_leaves.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/elements.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

bool is_plain_tensor(const Value& value) {
  const Tensor* tensor = value.as_tensor();
  const bool is_quantized = tensor != nullptr &&
                            tensor->dtype >= DType::kQInt8 &&
                            tensor->dtype <= DType::kQUInt2x4;
  return tensor != nullptr && !is_quantized &&
         (tensor->numel() == 0 || has_bytes(*tensor));
}

class LeafWalk final : public ValueWalk {
 public:
  LeafWalk()
      : ValueWalk(
            {.max_depth = kMaxDcpPath + 1,
             .max_visits = kWriteBounds.max_visits,
             .op = kWriteBounds.op}) {}

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
  Status visit(const Value& value) override {
    if (is_module(value)) {
      return state_dict(value);
    }
    return is_entered(value, 0) ? enter(value) : add(value);
  }

  // PyTorch enters a list for tensors, dicts and lists that it would enter.
  bool is_entered(const Value& value, std::size_t depth) {
    if (value.as_dict() != nullptr || is_module(value)) {
      return true;
    }
    const List* list = value.as_list();
    if (list == nullptr || depth == kMaxDcpPath) {
      return false;
    }
    const auto [known, is_new] = lists_.emplace(list, false);
    if (is_new) {
      known->second =
          std::ranges::any_of(list->items, [this, depth](const Value& element) {
            return element.as_tensor() != nullptr ||
                   is_entered(element, depth + 1);
          });
    }
    return known->second;
  }

  Status state_dict(const Value& module) {
    LOCKSTEP_ASSIGN(const FlatState flat, flatten(module));
    LOCKSTEP_TRY(count(flat.visits));
    for (const FlatTensor& entry : flat.tensors) {
      LOCKSTEP_TRY(below(entry.name, std::make_shared<Tensor>(*entry.tensor)));
    }
    return {};
  }

  Status add(const Value& value) {
    DcpLeaf leaf{.value = value};
    leaf.item.path = path();
    leaf.item.name = dotted(leaf.item.path);
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

  // As PyTorch joins a path: with a dot after a first key that is empty, too.
  static std::string dotted(const std::vector<PathStep>& path) {
    std::vector<std::string> steps;
    std::ranges::transform(path, std::back_inserter(steps), step_text);
    return join(steps, ".");
  }

  std::vector<DcpLeaf> leaves_;
  std::set<std::string> names_;
  // Whether a list is entered.
  std::map<const List*, bool> lists_;
};

} // namespace

Result<std::vector<DcpLeaf>> dcp_leaves(const Value& root) {
  return LeafWalk().run(root);
}

} // namespace lockstep::ckpt::internal
