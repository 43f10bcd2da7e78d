// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/prefix_fit.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/tensor/internal/key_prefixes.h"

namespace lockstep {
namespace {

using Keys = std::vector<std::string>;
using internal::all_start_with;
using internal::Cover;
using internal::covering_prefixes;
using internal::covers;
using internal::has_dot;
using internal::shared_prefixes;

// Names that wrappers give their only child: DataParallel and DDP, compile,
// FSDP, activation checkpointing, Lightning's strategies.
constexpr std::array<std::string_view, 5> kWrappers{
    "module",
    "_orig_mod",
    "_fsdp_wrapped_module",
    "_checkpoint_wrapped_module",
    "_forward_module"};

// Names that training scripts give the network inside of their own module.
constexpr std::array<std::string_view, 2> kUsualNames{"model", "net"};

bool is_wrapper(std::string_view name) {
  return std::ranges::find(kWrappers, name) != kWrappers.end();
}

// True if the last name of "a.module." is a wrapper's.
bool ends_in_wrapper(std::string_view prefix) {
  prefix.remove_suffix(1);
  return is_wrapper(prefix.substr(prefix.rfind('.') + 1));
}

// True for "module.", "model.module.": no name of these is a network's own.
bool says_nothing(std::string_view prefix) {
  while (!prefix.empty()) {
    const std::string_view name = prefix.substr(0, prefix.find('.'));
    if (!is_wrapper(name) &&
        std::ranges::find(kUsualNames, name) == kUsualNames.end()) {
      return false;
    }
    prefix.remove_prefix(name.size() + 1);
  }
  return true;
}

// The key without the names of wrappers.
std::string unwrapped(std::string_view key) {
  std::string bare;
  for (std::size_t begin = 0; begin < key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    const bool is_last = end == key.size();
    if (is_last || !is_wrapper(key.substr(begin, end - begin))) {
      bare += key.substr(begin, end - begin + (is_last ? 0 : 1));
    }
    begin = end + 1;
  }
  return bare;
}

// Nothing if two keys become one.
std::optional<Keys> unwrapped(std::span<const std::string> keys) {
  Keys bare;
  std::unordered_set<std::string> seen;
  for (const std::string& key : keys) {
    bare.push_back(unwrapped(key));
    if (!seen.insert(bare.back()).second) {
      return std::nullopt;
    }
  }
  return bare;
}

// One way to rename: what goes from the front, and what comes there.
struct Edit {
  std::string strip = {};
  std::string add = {};
  // It fits a part only: never taken, but another one is then no sure choice.
  bool is_partial = false;

  [[nodiscard]] std::string of(std::string_view key) const {
    if (key.starts_with(strip)) {
      key.remove_prefix(strip.size());
    }
    return add + std::string(key);
  }
};

// Both sides' keys in one spelling: as they are, or without wrappers.
struct Spelling {
  std::span<const std::string> model;
  std::span<const std::string> file;
};

// What may stand around the whole module: not a layer, whose name says what it
// is.
Keys module_prefixes(const Spelling& names) {
  Keys prefixes{""};
  for (const std::string& prefix : shared_prefixes(names.model)) {
    if (has_dot(names.model, prefix.size()) || ends_in_wrapper(prefix)) {
      prefixes.push_back(prefix);
    }
  }
  return prefixes;
}

std::vector<Edit> strips(const Spelling& names, const std::string& add) {
  std::vector<Edit> edits;
  for (std::string& prefix : shared_prefixes(names.file)) {
    edits.push_back({.strip = std::move(prefix), .add = add});
  }
  Keys bare;
  for (const std::string& key : names.model) {
    if (key.starts_with(add)) {
      bare.push_back(key.substr(add.size()));
    }
  }
  for (Cover& cover : covers(bare, names.file)) {
    edits.push_back(
        {.strip = std::move(cover.prefix),
         .add = add,
         .is_partial = cover.count < bare.size()});
  }
  for (const auto& known : {kUsualNames[0], kUsualNames[1], kWrappers[0]}) {
    edits.push_back({.strip = std::string(known) + ".", .add = add});
  }
  // A name is exchanged for another only if one of them says nothing.
  std::erase_if(edits, [&](const Edit& edit) {
    return !says_nothing(edit.strip) && !says_nothing(add);
  });
  return edits;
}

// Likeliest first: of two that fit as many keys, the first counts.
std::vector<Edit> edits_of(const Spelling& names) {
  std::vector<Edit> edits{{}};
  for (const std::string& add : module_prefixes(names)) {
    if (!add.empty()) {
      edits.push_back({.add = add});
    }
    for (Edit& edit : strips(names, add)) {
      edits.push_back(std::move(edit));
    }
  }
  for (Cover& cover : covers(names.file, names.model)) {
    edits.push_back(
        {.add = std::move(cover.prefix),
         .is_partial = cover.count < names.file.size()});
  }
  return edits;
}

// What an edit fits.
struct Way {
  Edit edit = {};
  // Numbers of a key of the file and of one of the module.
  std::vector<std::pair<std::size_t, std::size_t>> pairs = {};
  // Keys of the module.
  std::size_t count = 0;
  // What goes and what comes is around all keys of its side: no choice of one
  // part among others.
  bool is_around_all = false;
};

// Finds the edit that fits most keys.
class Search {
 public:
  Search(
      std::span<const std::string> model_keys,
      std::span<const std::string> file_keys)
      : model_(model_keys), file_(file_keys) {}

  void look(const Spelling& names) {
    std::unordered_map<std::string_view, std::size_t> index;
    for (std::size_t i = 0; i < names.model.size(); ++i) {
      index.emplace(names.model[i], i);
    }
    for (Edit& edit : edits_of(names)) {
      Way way{
          .is_around_all = all_start_with(names.file, edit.strip) &&
                           all_start_with(names.model, edit.add)};
      std::vector<bool> is_known(names.model.size(), false);
      for (std::size_t i = 0; i < names.file.size(); ++i) {
        const auto found = index.find(edit.of(names.file[i]));
        if (found != index.end()) {
          way.pairs.emplace_back(i, found->second);
          way.count += is_known[found->second] ? 0 : 1;
          is_known[found->second] = true;
        }
      }
      way.edit = std::move(edit);
      ways_.push_back(std::move(way));
    }
  }

  KeyFit best() && {
    const Way& best = *std::ranges::max_element(ways_, {}, [](const Way& way) {
      return way.edit.is_partial ? 0 : way.count;
    });
    KeyFit fit{.keys = Keys(file_.begin(), file_.end())};
    const bool is_whole =
        best.count == model_.size() && best.pairs.size() == file_.size();
    if (!best.is_around_all && !is_whole) {
      fit.rivals = rivals_of(best, &Edit::strip);
      fit.places = rivals_of(best, &Edit::add);
    }
    if (fit.rivals.empty() && fit.places.empty()) {
      for (const auto& [from, to] : best.pairs) {
        fit.keys[from] = model_[to];
      }
    }
    return fit;
  }

 private:
  // For what one of the two keys is, the other one.
  using Table = std::unordered_map<std::size_t, std::size_t>;

  // Of prefixes of the file: by the key of the module; of those of the module:
  // by the key of the file.
  static Table table_of(const Way& way, std::string Edit::*side) {
    Table table;
    for (const auto& [from, to] : way.pairs) {
      if (side == &Edit::strip) {
        table.emplace(to, from);
      } else {
        table.emplace(from, to);
      }
    }
    return table;
  }

  // The prefixes of ways that take other keys for the same ones; none if they
  // are not two.
  Keys rivals_of(const Way& best, std::string Edit::*side) const {
    constexpr std::size_t kMostNamed = 8;
    Keys names{best.edit.*side};
    std::vector<Table> tables{table_of(best, side)};
    for (const Way& way : ways_) {
      if (names.front().empty() || names.size() == kMostNamed) {
        break;
      }
      if (way.count * 2 < best.count || (way.edit.*side).empty()) {
        continue;
      }
      Table table = table_of(way, side);
      const bool is_new = std::ranges::all_of(tables, [&](const Table& other) {
        return std::ranges::any_of(table, [&](const auto& item) {
          const auto found = other.find(item.first);
          return found != other.end() && found->second != item.second;
        });
      });
      if (is_new) {
        names.push_back(way.edit.*side);
        tables.push_back(std::move(table));
      }
    }
    return names.size() > 1 ? names : Keys();
  }

  std::span<const std::string> model_;
  std::span<const std::string> file_;
  std::vector<Way> ways_ = {};
};

// The hint where one side has more than the other.
std::string partial_hint(
    std::span<const std::string> bare,
    std::span<const std::string> longer,
    std::string_view text,
    std::string_view option) {
  const Keys prefixes = covering_prefixes(bare, longer);
  if (prefixes.size() != 1 || !has_dot(bare, 0)) {
    return {}; // a layer by itself fits in many places
  }
  const std::string prefix = escape(prefixes.front());
  return format(
      "all names of the {} under '{}', beside {} more: load with .{} = \"{}\", "
      ".strict = false",
      text,
      prefix,
      longer.size() - bare.size(),
      option,
      prefix);
}

} // namespace

KeyFit fit_keys(
    std::span<const std::string> model_keys,
    std::span<const std::string> file_keys) {
  Search search(model_keys, file_keys);
  search.look({.model = model_keys, .file = file_keys});
  const auto model = unwrapped(model_keys);
  const auto file = unwrapped(file_keys);
  if (model && file) {
    search.look({.model = *model, .file = *file});
  }
  return std::move(search).best();
}

std::string prefix_hint(
    std::span<const std::string> model_keys,
    std::span<const std::string> file_keys) {
  constexpr std::string_view kText =
      "all {} keys differ by the prefix '{}': load with .{} = \"{}\"";
  if (model_keys.size() == file_keys.size()) {
    const Keys strip = covering_prefixes(model_keys, file_keys);
    const Keys add = covering_prefixes(file_keys, model_keys);
    for (const auto& [prefixes, option] :
         {std::pair(&strip, "strip_prefix"), std::pair(&add, "add_prefix")}) {
      if (!prefixes->empty()) {
        const std::string p = escape(prefixes->front());
        return format(kText, model_keys.size(), p, option, p);
      }
    }
  }
  if (model_keys.size() < file_keys.size()) {
    return partial_hint(
        model_keys,
        file_keys,
        "module are in the file",
        "strip_prefix");
  }
  return model_keys.size() > file_keys.size() ? partial_hint(
                                                    file_keys,
                                                    model_keys,
                                                    "file are in the module",
                                                    "add_prefix")
                                              : std::string();
}

std::string nested_weights_hint(const ckpt::Value& value) {
  const ckpt::WeightsPlace place = ckpt::locate_weights(value);
  return place.key.empty()
             ? std::string()
             : format(
                   "the weights are under the key '{}' of this checkpoint",
                   place.key);
}

} // namespace lockstep
