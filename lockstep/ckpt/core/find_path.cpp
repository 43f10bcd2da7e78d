// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/places.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

using Found = std::optional<Value>;

// Hostile keys could match in many ways; this bounds the search.
constexpr std::uint64_t kMaxSteps = 100'000;

class Search {
 public:
  Found find(const Value& value, std::string_view path) {
    if (is_ambiguous_ || ++steps_ > kMaxSteps) {
      return std::nullopt;
    }
    auto found = by_name(value, path);
    return found || !path.starts_with('<') ? std::move(found)
                                           : in_places(value, path);
  }

  // Whether another value has the name of the one that was found.
  [[nodiscard]] bool is_ambiguous() const {
    return is_ambiguous_;
  }

 private:
  Found by_name(const Value& value, std::string_view path) {
    if (const Dict* dict = value.as_dict()) {
      return in_items(dict->items, path);
    }
    if (const std::vector<Value>* values = value.elements()) {
      return in_elements(*values, path);
    }
    if (const Object* object = value.as_object()) {
      return in_object(value, *object, path);
    }
    return std::nullopt;
  }

  // Below what no name leads to: "<args>.0".
  Found in_places(const Value& value, std::string_view path) {
    for (std::size_t i = 0; i < child_count(value); ++i) {
      const Child child = child_of(value, i);
      const std::string step = place_step(value, child);
      if (!step.empty() && is_front(path, step)) {
        // "<attributes>.a.b" may be 'b' below 'a', or 'a.b'.
        if (auto found = below(*child.value, path, step.size())) {
          return found;
        }
      }
    }
    return is_module(value) && is_front(path, kStatePlace)
               ? below(*value.as_object()->state, path, kStatePlace.size())
               : std::nullopt;
  }

  Found below(const Value& value, std::string_view path, std::size_t step) {
    return path.size() == step ? Found(value)
                               : find(value, path.substr(step + 1));
  }

  Found in_items(const std::vector<Item>& items, std::string_view path) {
    Found first;
    for (const auto& [key, value] : items) {
      const std::string name = key_text(key);
      if (!is_front(path, name)) {
        continue;
      }
      auto found = below(value, path, name.size());
      is_ambiguous_ |= first && found;
      first = first ? first : std::move(found);
    }
    return first;
  }

  Found in_elements(const std::vector<Value>& values, std::string_view path) {
    const std::size_t dot = path.find('.');
    const std::string_view index = path.substr(0, dot);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::to_string(i) == index) {
        return dot == std::string_view::npos
                   ? values[i]
                   : find(values[i], path.substr(dot + 1));
      }
    }
    return std::nullopt;
  }

  Found in_parts(const LayoutTensor& tensor, std::string_view path) {
    for (const TensorPart& part : tensor.parts) {
      if (part.name == path) {
        return *part.value;
      }
    }
    return std::nullopt;
  }

  Found in_unnamed(const Value& module, std::string_view path) {
    const std::string_view name = unnamed_child(module);
    const Value* modules =
        name.empty() ? nullptr : module.as_object()->state->find("_modules");
    const Value* child = modules == nullptr ? nullptr : modules->find(name);
    return child == nullptr ? std::nullopt : find(*child, path);
  }

  Found
  in_object(const Value& value, const Object& object, std::string_view path) {
    if (const auto tensor = layout_tensor(value)) {
      return in_parts(*tensor, path);
    }
    if (is_module(value)) {
      if (auto found = in_unnamed(value, path)) {
        return found;
      }
      for (const std::string_view part : kMemberParts) {
        const Value* entries = object.state->find(part);
        auto found = entries == nullptr ? Found() : find(*entries, path);
        if (found) {
          return found;
        }
      }
    }
    if (object.state != nullptr) {
      if (auto found = find(*object.state, path)) {
        return found;
      }
    }
    return in_items(object.items, path);
  }

  std::uint64_t steps_ = 0;
  bool is_ambiguous_ = false;
};

Error ambiguous(std::string_view path) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "ckpt.show",
      .message = format(
          "two values are named '{}', whose keys look alike: as 1 and '1' do, "
          "or 'a.b' and 'b' in 'a'",
          escape(path)),
      .hint = "load the file in Python and rename one of the keys",
      .detail = "E_AMBIGUOUS"};
}

// Names that might be meant.
class Candidates {
 public:
  explicit Candidates(std::size_t longest) : longest_(longest) {}

  void add(std::string name) {
    if (name.size() <= longest_) {
      names_.push_back(std::move(name));
    }
  }
  // And the modules that hold it: "layer1", "layer1.0".
  void add_tensor(const std::string& name) {
    add(name);
    for (std::size_t dot = name.find('.'); dot <= longest_;
         dot = name.find('.', dot + 1)) {
      names_.push_back(name.substr(0, dot));
    }
  }
  [[nodiscard]] std::string nearest_to(std::string_view path) const {
    std::string near = nearest(path, names_);
    return near == path ? "" : near;
  }

 private:
  // No longer one is near; hostile keys are.
  std::size_t longest_;
  std::vector<std::string> names_;
};

} // namespace

std::string near_name(const Value& root, std::string_view path) {
  const std::size_t longest = 2 * path.size() + 2;
  const std::string below_a_prefix = format(".{}", path);
  std::string same;
  Candidates whole(longest);
  std::map<std::string, Candidates> below; // entries of a checkpoint
  if (const Dict* dict = root.as_dict()) {
    for (const auto& [key, value] : dict->items) {
      whole.add(key_text(key));
    }
  }
  // A walk that ends early leaves the names so far.
  constexpr std::uint64_t kMaxVisits = 50'000;
  [[maybe_unused]] const Status status = for_each_tensor(
      root,
      [&](const std::string& name, const Tensor& /*tensor*/) {
        // "fc.weight" of "model.fc.weight", "fc" as well.
        const std::size_t at = name.find(below_a_prefix);
        const std::size_t end = at + below_a_prefix.size();
        if (same.empty() && at != std::string::npos &&
            (end == name.size() || name[end] == '.')) {
          same = name.substr(0, end);
        }
        whole.add_tensor(name);
        const std::size_t dot = name.find('.');
        if (dot <= longest) {
          below.try_emplace(name.substr(0, dot), longest)
              .first->second.add_tensor(name.substr(dot + 1));
        }
      },
      {.max_visits = kMaxVisits});
  if (!same.empty() && !path.empty()) {
    return same;
  }
  std::string near = whole.nearest_to(path);
  for (auto entry = below.begin(); near.empty() && entry != below.end();
       ++entry) {
    const std::string tail = entry->second.nearest_to(path);
    near = tail.empty() ? "" : format("{}.{}", entry->first, tail);
  }
  return near;
}

Result<Value> find_path(const Value& root, std::string_view path) {
  if (path.empty()) {
    return root;
  }
  Search search;
  auto named = search.find(root, path);
  if (search.is_ambiguous()) {
    return ambiguous(path);
  }
  if (named) {
    return *std::move(named);
  }
  const std::string near = near_name(root, path);
  return Error{
      .code = ErrorCode::kNotFound,
      .op = "ckpt.show",
      .message = format("no value is named '{}'", escape(path)),
      .hint = near.empty() ? "run 'lockstep ckpt ls FILE' to see all names"
                           : format("did you mean '{}'?", escape(near)),
      .detail = "E_NO_KEY"};
}

Status check_unambiguous(const Value& root, std::string_view path) {
  Search search;
  search.find(root, path);
  return search.is_ambiguous() ? Status(ambiguous(path)) : Status();
}

Result<std::optional<Value>> find_below(
    const Value& root,
    std::string_view prefix) {
  const std::string front = format("{}.", prefix);
  std::vector<Item> items;
  LOCKSTEP_TRY(
      for_each_tensor(root, [&](const std::string& name, const Tensor& tensor) {
        if (name.starts_with(front)) {
          items.emplace_back(name.substr(front.size()), tensor);
        }
      }));
  return items.empty() ? std::nullopt
                       : std::optional<Value>(Dict{.items = std::move(items)});
}

} // namespace lockstep::ckpt
