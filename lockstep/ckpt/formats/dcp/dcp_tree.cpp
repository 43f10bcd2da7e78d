// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_tree.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"

namespace lockstep::ckpt::internal {
namespace {

// "12", but not "012", "+1" or "12a".
std::optional<std::int64_t> number_of(const std::string& key) {
  const auto number = parse_number<std::int64_t>(key, 0);
  return number && std::to_string(*number) == key ? number : std::nullopt;
}

Error taken(const std::string& name) {
  return corrupt_file(
      "E_DCP_METADATA",
      format("the path of '{}' is that of another value", escape(name)),
      kDcpMetadataFile);
}

Error too_long(std::uint64_t count) {
  return {
      .code = ErrorCode::kUnsafe,
      .op = "ckpt.read",
      .message = format("a list would have {} elements", count),
      .hint = "Limits::max_nodes allows more",
      .record = kDcpMetadataFile,
      .detail = "E_LIMIT"};
}

// Elements of lists that may still be made, and the file's account.
struct Counts {
  std::uint64_t left = 0;
  Budget& budget;
};

} // namespace

// A dict or a list until `value` is set.
struct DcpTree::Node {
  std::optional<Value> value = {};
  // Of a dict, in the order of the file.
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> members = {};
  std::map<std::string, std::size_t> places = {};
  std::map<std::int64_t, std::unique_ptr<Node>> elements = {};

  // The child at `step`; null if this node is of another kind.
  Node* child(const PathStep& step) {
    if (value) {
      return nullptr;
    }
    if (const std::string* key = std::get_if<std::string>(&step)) {
      if (!elements.empty()) {
        return nullptr;
      }
      const auto [place, fresh] = places.emplace(*key, members.size());
      if (fresh) {
        members.emplace_back(*key, std::make_unique<Node>());
      }
      return members[place->second].second.get();
    }
    if (!members.empty()) {
      return nullptr;
    }
    auto& element = elements[std::get<std::int64_t>(step)];
    if (element == nullptr) {
      element = std::make_unique<Node>();
    }
    return element.get();
  }

  [[nodiscard]] bool is_empty() const {
    return !value && members.empty() && elements.empty();
  }

  // Depth is bounded by kMaxDcpPath, with which paths are read.
  Result<Value> build(bool is_state, Counts& counts) {
    if (value) {
      return *std::move(value);
    }
    return elements.empty() ? build_dict(is_state, counts) : build_list(counts);
  }

  Result<Value> build_dict(bool is_state, Counts& counts) {
    const bool numbered =
        is_state && std::ranges::all_of(members, [](const auto& member) {
          return number_of(member.first).has_value();
        });
    Dict dict;
    dict.items.reserve(members.size());
    for (auto& [key, node] : members) {
      LOCKSTEP_ASSIGN(Value child, node->build(key == "state", counts));
      const auto number = numbered ? number_of(key) : std::nullopt;
      dict.items.emplace_back(
          number ? Value(*number) : Value(key),
          std::move(child));
    }
    return Value(std::move(dict));
  }

  Result<Value> build_list(Counts& counts) {
    // PyTorch names no element that is an empty dict or list, so that some of
    // a list may be missing; but a number in a small file must not fill the
    // memory.
    const auto count = static_cast<std::uint64_t>(elements.rbegin()->first) + 1;
    if (count > counts.left) {
      return too_long(count);
    }
    counts.left -= count;
    Status counted = counts.budget.step(count);
    if (counted) {
      counted = counts.budget.make(count * sizeof(Value));
    }
    if (!counted) {
      Error error = std::move(counted).error();
      error.message =
          format("a list would have {} elements: {}", count, error.message);
      error.record = kDcpMetadataFile;
      return error;
    }
    List list;
    list.items.resize(static_cast<std::size_t>(count));
    for (auto& [index, node] : elements) {
      LOCKSTEP_ASSIGN(
          list.items[static_cast<std::size_t>(index)],
          node->build(false, counts));
    }
    return Value(std::move(list));
  }
};

DcpTree::DcpTree() : root_(std::make_unique<Node>()) {}
DcpTree::~DcpTree() = default;

DcpTree::Node* DcpTree::reach(const std::vector<PathStep>& path) {
  Node* node = root_.get();
  for (const PathStep& step : path) {
    node = node == nullptr ? nullptr : node->child(step);
  }
  return node;
}

Status DcpTree::add(const DcpItem& item, Value value) {
  Node* const node = reach(item.path);
  if (node == nullptr || !node->is_empty()) {
    return taken(item.name);
  }
  node->value = std::move(value);
  return {};
}

Status DcpTree::add_empty(const std::vector<PathStep>& path) {
  const Node* const node = reach(path);
  const bool is_dict =
      node != nullptr && !node->value && node->elements.empty();
  return is_dict ? Status() : Status(taken(step_text(path.back())));
}

Result<Value> DcpTree::finish(const Limits& limits) {
  const auto budget = budget_of(limits, 0);
  Counts counts{.left = limits.max_nodes, .budget = *budget};
  return root_->build(false, counts);
}

} // namespace lockstep::ckpt::internal
