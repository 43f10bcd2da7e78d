// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_finish.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/change_container.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// An integer or bool key: Python's dict compares them by their numbers.
std::optional<std::int64_t> number_of(const Value& key) {
  if (const bool* flag = key.as_bool()) {
    return *flag ? 1 : 0;
  }
  const std::int64_t* number = key.as_int();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

// Equal keys have equal hashes; others seldom do.
bool may_have_equal_keys(const std::vector<Item>& items) {
  std::vector<std::size_t> hashes;
  hashes.reserve(items.size());
  for (const Item& item : items) {
    if (const std::string* text = item.first.as_string()) {
      hashes.push_back(std::hash<std::string_view>{}(*text));
    } else if (const auto number = number_of(item.first)) {
      hashes.push_back(static_cast<std::size_t>(*number));
    }
  }
  std::ranges::sort(hashes);
  return std::ranges::adjacent_find(hashes) != hashes.end();
}

// Moves later values of equal keys to the first place, as Python's dict does.
// Keys of other types than text and integers are left alone.
void merge_equal_keys(std::vector<Item>& items) {
  if (items.size() < 2 || !may_have_equal_keys(items)) {
    return;
  }
  std::map<std::string_view, std::size_t> texts;
  std::map<std::int64_t, std::size_t> numbers;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::size_t place = kept;
    if (const std::string* text = items[i].first.as_string()) {
      place = texts.try_emplace(*text, kept).first->second;
    } else if (const auto number = number_of(items[i].first)) {
      place = numbers.try_emplace(*number, kept).first->second;
    }
    if (place != kept) {
      items[place].second = std::move(items[i].second);
      continue;
    }
    if (kept != i) {
      items[kept] = std::move(items[i]);
    }
    ++kept;
  }
  items.resize(kept);
}

class Finisher {
 public:
  explicit Finisher(std::uint64_t max_depth) : max_depth_(max_depth) {}

  Status run(Value& root) {
    expand_storage(root);
    enter(root);
    while (!path_.empty()) {
      Frame& frame = path_.back();
      if (frame.next == frame.count) {
        leave();
        continue;
      }
      Value& child = child_at(frame.node, frame.next++);
      if (expand_storage(child)) {
        LOCKSTEP_TRY(raise_height(kStorageHeight));
      } else if (child_count(child) != 0) {
        LOCKSTEP_TRY(visit(child));
      }
    }
    return {};
  }

  // What has several owners, of all that was visited.
  [[nodiscard]] SharedNodes shared() const {
    SharedNodes nodes;
    for (const auto& [node, height] : heights_) {
      nodes.insert(node);
    }
    return nodes;
  }

 private:
  struct Frame {
    Value node = {};
    std::size_t next = 0;
    std::size_t count = 0;
    std::uint64_t height = 1;
    bool shared = false;
  };
  static constexpr std::uint64_t kOpen = 0;
  // An object, its arguments, a tensor.
  static constexpr std::uint64_t kStorageHeight = 3;

  // A storage that no call has taken becomes an object of its class.
  static bool expand_storage(Value& value) {
    const auto storage = value.shared_storage();
    if (storage != nullptr) {
      value = storage_object(storage);
    }
    return storage != nullptr;
  }

  Status visit(Value& child) {
    if (child.owners() > 1) {
      const auto seen = heights_.find(child.address());
      if (seen != heights_.end() && seen->second == kOpen) {
        child = reference(child.address());
        return {};
      }
      if (seen != heights_.end()) {
        return raise_height(seen->second + 1);
      }
    }
    enter(child);
    return raise_height(1);
  }

  void enter(Value& value) {
    const bool shared = value.owners() > 1;
    if (shared) {
      heights_[value.address()] = kOpen;
    }
    if (Dict* dict = value.as_dict()) {
      merge_equal_keys(dict->items);
      merge_equal_keys(dict->attributes);
    }
    path_.push_back(
        {.node = value, .count = child_count(value), .shared = shared});
  }

  void leave() {
    const Frame frame = std::move(path_.back());
    path_.pop_back();
    if (frame.shared) {
      heights_[frame.node.address()] = frame.height;
    }
    if (!path_.empty()) {
      path_.back().height = std::max(path_.back().height, frame.height + 1);
    }
  }

  // Height of the innermost open node, and so depth below the root.
  Status raise_height(std::uint64_t height) {
    Frame& frame = path_.back();
    frame.height = std::max(frame.height, height);
    if (path_.size() + frame.height - 1 > max_depth_) {
      return read_error(
          ErrorCode::kUnsafe,
          "E_DEPTH",
          format("values nest deeper than {} levels", max_depth_));
    }
    return {};
  }

  [[nodiscard]] Value reference(const void* node) const {
    std::int64_t levels = 0;
    for (std::size_t i = path_.size(); i-- > 0;) {
      if (path_[i].node.address() == node) {
        break;
      }
      ++levels;
    }
    return Object{
        .global = kReferenceGlobal,
        .args = std::make_shared<Value>(Value::tuple({levels}))};
  }

  std::uint64_t max_depth_;
  std::vector<Frame> path_;
  // Of nodes with several owners: kOpen while on the path, then their height.
  std::unordered_map<const void*, std::uint64_t> heights_;
};

// Breaks a cycle.
struct Empty {
  template <class T>
  void operator()(T& node) const {
    auto items = std::exchange(node.items, {});
    if constexpr (std::is_same_v<T, Dict>) {
      auto attributes = std::exchange(node.attributes, {});
    }
    if constexpr (std::is_same_v<T, Object>) {
      auto state = std::exchange(node.state, {});
    }
  }
};

} // namespace

ReusedNodes::~ReusedNodes() {
  for (auto& [node, value] : nodes_) {
    internal::change_container(value, Empty{});
  }
}

void ReusedNodes::note(const Value& value) {
  const Object* object = value.as_object();
  const bool is_name = object != nullptr && is_bare_global(*object);
  // A tuple cannot be changed: a cycle through it goes through another.
  if (value.is_container() && value.as_tuple() == nullptr && !is_name) {
    nodes_.emplace(value.address(), value);
  }
}

void ReusedNodes::release(const SharedNodes& nodes) {
  std::erase_if(nodes_, [&](const auto& entry) {
    return nodes.contains(entry.first);
  });
}

Result<SharedNodes> finish_tree(Value& root, std::uint64_t max_depth) {
  Finisher finisher(max_depth);
  LOCKSTEP_TRY(finisher.run(root));
  return finisher.shared();
}

} // namespace lockstep::ckpt
