// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/prefix_fit.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"

namespace lockstep {
namespace {

using Keys = std::vector<std::string>;

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

// "a.b." of "a.b.weight", then "a."; longest first.
Keys dotted_prefixes(std::string_view key) {
  Keys prefixes;
  for (std::size_t dot = key.rfind('.'); dot != std::string_view::npos;
       dot = dot == 0 ? std::string_view::npos : key.rfind('.', dot - 1)) {
    prefixes.emplace_back(key.substr(0, dot + 1));
  }
  return prefixes;
}

// True if the last name of "a.module." is a wrapper's.
bool ends_in_wrapper(std::string_view prefix) {
  prefix.remove_suffix(1);
  return is_wrapper(prefix.substr(prefix.rfind('.') + 1));
}

bool is_usual(std::string_view prefix) {
  return std::ranges::any_of(kUsualNames, [&](std::string_view name) {
    return prefix.substr(0, prefix.size() - 1) == name;
  });
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

// The longest prefix that all keys share, then the shorter ones.
Keys shared_prefixes(std::span<const std::string> keys) {
  Keys shared;
  for (const std::string& prefix :
       keys.empty() ? Keys() : dotted_prefixes(keys.front())) {
    if (std::ranges::all_of(keys, [&](const std::string& key) {
          return key.starts_with(prefix);
        })) {
      shared.push_back(prefix);
    }
  }
  return shared;
}

// The prefixes that turn each of `bare` into one of `longer`.
Keys covering_prefixes(
    std::span<const std::string> bare,
    std::span<const std::string> longer) {
  Keys prefixes;
  if (bare.empty()) {
    return prefixes;
  }
  const std::unordered_set<std::string> known(longer.begin(), longer.end());
  for (const std::string& key : longer) {
    if (key.size() <= bare[0].size() || !key.ends_with(bare[0])) {
      continue;
    }
    std::string prefix = key.substr(0, key.size() - bare[0].size());
    if (prefix.ends_with('.') && std::ranges::all_of(bare, [&](const auto& k) {
          return known.contains(prefix + k);
        })) {
      prefixes.push_back(std::move(prefix));
    }
  }
  return prefixes;
}

bool has_dot(std::span<const std::string> keys, std::size_t from) {
  return std::ranges::any_of(keys, [&](const std::string& key) {
    return key.find('.', from) != std::string::npos;
  });
}

// One way to rename: what goes from the front, and what comes there.
struct Edit {
  std::string strip = {};
  std::string add = {};

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

Keys file_prefixes(const Spelling& names, std::string_view module_prefix) {
  Keys prefixes = shared_prefixes(names.file);
  Keys bare;
  for (const std::string& key : names.model) {
    if (key.starts_with(module_prefix)) {
      bare.push_back(key.substr(module_prefix.size()));
    }
  }
  for (std::string& prefix : covering_prefixes(bare, names.file)) {
    prefixes.push_back(std::move(prefix));
  }
  for (const auto& known : {kUsualNames[0], kUsualNames[1], kWrappers[0]}) {
    prefixes.push_back(std::string(known) + ".");
  }
  return prefixes;
}

// Likeliest first: of two that fit as many keys, the first counts.
std::vector<Edit> edits_of(const Spelling& names) {
  std::vector<Edit> edits{{}};
  for (const std::string& add : module_prefixes(names)) {
    if (!add.empty()) {
      edits.push_back({.add = add});
    }
    for (const std::string& strip : file_prefixes(names, add)) {
      // A name is exchanged for another only if one of them says nothing.
      if (add.empty() || is_usual(strip) || is_usual(add) ||
          ends_in_wrapper(strip) || ends_in_wrapper(add)) {
        edits.push_back({.strip = strip, .add = add});
      }
    }
  }
  for (const std::string& add : covering_prefixes(names.file, names.model)) {
    edits.push_back({.add = add});
  }
  return edits;
}

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// Finds the edit that fits most keys.
class Search {
 public:
  Search(
      std::span<const std::string> model_keys,
      std::span<const std::string> file_keys)
      : model_(model_keys), file_(file_keys) {}

  void look(const Spelling& names) {
    std::unordered_map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < names.model.size(); ++i) {
      index.emplace(names.model[i], i);
    }
    for (const Edit& edit : edits_of(names)) {
      KeyFit fit;
      std::vector<std::size_t> source(names.model.size(), kNone);
      std::size_t count = 0;
      for (std::size_t i = 0; i < names.file.size(); ++i) {
        const auto found = index.find(edit.of(names.file[i]));
        if (found == index.end()) {
          fit.keys.push_back(file_[i]); // messages name what is in the file
          continue;
        }
        std::size_t& from = source[found->second];
        count += from == kNone ? 1 : 0;
        from = from == kNone ? i : from;
        fit.keys.push_back(model_[found->second]);
      }
      compare(std::move(fit), source, count, edit.strip);
    }
  }

  KeyFit best() && {
    if (rivals_.size() > 1) {
      return {
          .keys = Keys(file_.begin(), file_.end()),
          .rivals = std::move(rivals_)};
    }
    return std::move(best_);
  }

 private:
  void compare(
      KeyFit fit,
      const std::vector<std::size_t>& source,
      std::size_t count,
      const std::string& strip) {
    if (!is_first_ && count <= count_) {
      const bool is_rival = count == count_ && !rivals_.empty() &&
                            !std::ranges::equal(
                                source,
                                source_,
                                [](std::size_t a, std::size_t b) {
                                  return a == b || a == kNone || b == kNone;
                                });
      if (is_rival && std::ranges::find(rivals_, strip) == rivals_.end()) {
        rivals_.push_back(strip);
      }
      return;
    }
    is_first_ = false;
    best_ = std::move(fit);
    source_ = source;
    count_ = count;
    rivals_ = strip.empty() ? Keys() : Keys{strip};
  }

  std::span<const std::string> model_;
  std::span<const std::string> file_;
  KeyFit best_;
  /// The file's key for each of the module's.
  std::vector<std::size_t> source_;
  std::size_t count_ = 0;
  bool is_first_ = true;
  Keys rivals_;
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
