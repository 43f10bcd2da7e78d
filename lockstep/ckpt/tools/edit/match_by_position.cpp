// SPDX-License-Identifier: BSD-3-Clause
//
// The longest common subsequence of the shapes, if it is the only one. A pair
// (i, j) is part of some longest one if what fits before it, itself, and what
// fits behind it add up to the whole; with more such pairs than the length,
// there are several.
#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/match.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/tools/edit/metadata.h"
#include "lockstep/ckpt/tools/edit/rekey_dict.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

using Shapes = std::span<const NamedShape>;

// "'conv.bias' [4] in the file", or that nothing is there.
std::string entry_text(Shapes entries, std::size_t place, const char* side) {
  return place == entries.size()
             ? format("nothing in the {}", side)
             : format(
                   "'{}' {} in the {}",
                   escape(entries[place].name),
                   shape_text({.sizes = entries[place].sizes}),
                   side);
}

Error mismatch(std::string detail, std::string message, std::string hint) {
  return {
      .code = ErrorCode::kMismatch,
      .op = "ckpt.match",
      .message = std::move(message),
      .hint = std::move(hint),
      .detail = std::move(detail)};
}

// Lengths of the longest common subsequences of all beginnings, or ends.
class Lengths {
 public:
  Lengths(std::size_t rows, std::size_t columns)
      : columns_(columns + 1), cells_((rows + 1) * (columns + 1), 0) {}
  std::uint16_t& at(std::size_t row, std::size_t column) {
    return cells_[row * columns_ + column];
  }

 private:
  std::size_t columns_;
  std::vector<std::uint16_t> cells_;
};

class Matcher {
 public:
  Matcher(Shapes file, Shapes model)
      : file_(file),
        model_(model),
        before_(file.size(), model.size()),
        behind_(file.size(), model.size()) {}

  Result<std::vector<PositionPair>> run() {
    fill();
    const std::size_t length = before_.at(file_.size(), model_.size());
    std::vector<PositionPair> pairs;
    for (std::size_t i = 0; i < file_.size(); ++i) {
      for (std::size_t j = 0; j < model_.size(); ++j) {
        const bool is_part =
            file_[i].sizes == model_[j].sizes &&
            before_.at(i, j) + 1U + behind_.at(i + 1, j + 1) == length;
        if (is_part && !pairs.empty() && pairs.back().from == i) {
          return two_places(file_[i], model_[pairs.back().to], model_[j]);
        }
        if (is_part) {
          pairs.push_back({.from = i, .to = j});
        }
      }
    }
    return check_once(std::move(pairs), length);
  }

 private:
  void fill() {
    for (std::size_t i = 0; i < file_.size(); ++i) {
      for (std::size_t j = 0; j < model_.size(); ++j) {
        before_.at(i + 1, j + 1) = longer(
            i,
            j,
            before_.at(i, j),
            before_.at(i, j + 1),
            before_.at(i + 1, j));
      }
    }
    for (std::size_t i = file_.size(); i-- > 0;) {
      for (std::size_t j = model_.size(); j-- > 0;) {
        behind_.at(i, j) = longer(
            i,
            j,
            behind_.at(i + 1, j + 1),
            behind_.at(i + 1, j),
            behind_.at(i, j + 1));
      }
    }
  }

  [[nodiscard]] std::uint16_t longer(
      std::size_t i,
      std::size_t j,
      std::uint16_t both,
      std::uint16_t one,
      std::uint16_t other) const {
    return file_[i].sizes == model_[j].sizes
               ? static_cast<std::uint16_t>(both + 1)
               : std::max(one, other);
  }

  // Several entries of the file for one place of the model.
  [[nodiscard]] Result<std::vector<PositionPair>> check_once(
      std::vector<PositionPair> pairs,
      std::size_t length) const {
    if (pairs.size() == length) {
      return pairs;
    }
    std::map<std::size_t, std::size_t> first;
    for (const PositionPair& pair : pairs) {
      const auto [old, is_new] = first.emplace(pair.to, pair.from);
      if (!is_new) {
        return two_places(
            model_[pair.to],
            file_[old->second],
            file_[pair.from]);
      }
    }
    return mismatch(
        "E_AMBIGUOUS",
        format(
            "several mappings fit; {}",
            first_difference_text(file_, model_)),
        "");
  }

  [[nodiscard]] Error two_places(
      const NamedShape& entry,
      const NamedShape& one,
      const NamedShape& other) const {
    return mismatch(
        "E_AMBIGUOUS",
        format(
            "position and shape do not decide: '{}' {} fits '{}' and '{}'; {}",
            escape(entry.name),
            shape_text({.sizes = entry.sizes}),
            escape(one.name),
            escape(other.name),
            first_difference_text(file_, model_)),
        "take the extra entries out first: 'lockstep ckpt drop FILE KEY...'");
  }

  Shapes file_;
  Shapes model_;
  Lengths before_;
  Lengths behind_;
};

bool is_identity(Shapes file, Shapes model) {
  return std::ranges::equal(
      file,
      model,
      {},
      &NamedShape::sizes,
      &NamedShape::sizes);
}

Result<std::vector<PositionPair>> find_pairs(Shapes file, Shapes model) {
  if (is_identity(file, model)) {
    std::vector<PositionPair> pairs;
    pairs.reserve(file.size());
    for (std::size_t i = 0; i < file.size(); ++i) {
      pairs.push_back({.from = i, .to = i});
    }
    return pairs;
  }
  if (file.size() > kMaxMatched || model.size() > kMaxMatched) {
    return Error{
        .code = ErrorCode::kUnsafe,
        .op = "ckpt.match",
        .message = format(
            "lists of {} and {} entries differ; at most {} are compared",
            file.size(),
            model.size(),
            kMaxMatched),
        .detail = "E_LIMIT"};
  }
  return Matcher(file, model).run();
}

// Names of entries that no pair has.
std::vector<std::string> left_over(
    Shapes entries,
    const std::vector<PositionPair>& pairs,
    std::size_t PositionPair::*side) {
  std::vector<bool> used(entries.size(), false);
  for (const PositionPair& pair : pairs) {
    used[pair.*side] = true;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!used[i]) {
      names.push_back(entries[i].name);
    }
  }
  return names;
}

std::string key_list_text(
    std::string_view kind,
    const std::vector<std::string>& keys) {
  std::vector<std::string> quoted;
  quoted.reserve(keys.size());
  for (const std::string& key : keys) {
    quoted.push_back(format("\"{}\"", escape(key, 200)));
  }
  return keys.empty() ? ""
                      : format(
                            "{} key(s) in state_dict: {}. \n",
                            kind,
                            join(quoted, ", "));
}

} // namespace

std::string first_difference_text(Shapes file, Shapes model) {
  const auto [in_file, in_model] = std::ranges::mismatch(
      file,
      model,
      {},
      &NamedShape::sizes,
      &NamedShape::sizes);
  if (in_file == file.end() && in_model == model.end()) {
    return {};
  }
  const auto place = static_cast<std::size_t>(in_file - file.begin());
  return format(
      "entry {} is {}, {}",
      place + 1,
      entry_text(file, place, "file"),
      entry_text(model, place, "model"));
}

std::string parent_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

Result<PositionMatch> match_by_position(Shapes file, Shapes model) {
  LOCKSTEP_ASSIGN(auto pairs, find_pairs(file, model));
  if (pairs.empty()) {
    return mismatch(
        "E_NO_MATCH",
        format(
            "the file has {} and the model {}, with no shape in common; {}",
            counted(file.size(), "entry", "entries"),
            with_commas(model.size()),
            first_difference_text(file, model)),
        "");
  }
  PositionMatch match;
  match.missing_keys = left_over(model, pairs, &PositionPair::to);
  match.unexpected_keys = left_over(file, pairs, &PositionPair::from);
  match.pairs = std::move(pairs);
  return match;
}

Result<std::vector<NamedShape>> shapes_of(const Value& weights) {
  std::vector<NamedShape> shapes;
  LOCKSTEP_TRY(for_each_named_tensor(
      weights,
      [&shapes](const std::string& name, const Tensor& tensor) {
        shapes.push_back({.name = name, .sizes = tensor.sizes});
      }));
  return shapes;
}

Result<Edited> rename_by_position(
    const Value& root,
    Shapes model,
    const PositionMatch& match) {
  LOCKSTEP_ASSIGN(const WeightsPlace place, weights_to_edit(root));
  LOCKSTEP_ASSIGN(const auto file, shapes_of(place.value));
  std::map<std::string, std::string> names;
  std::map<std::string, std::string> parents{{"", ""}};
  for (const PositionPair& pair : match.pairs) {
    const std::string& from = file[pair.from].name;
    const std::string& to = model[pair.to].name;
    if (!names.emplace(from, to).second) {
      return mismatch(
          "E_AMBIGUOUS",
          format("two entries of the file are called '{}'", escape(from)),
          "drop or rename one of them first"); // 0 and '0'
    }
    parents.emplace(parent_of(from), parent_of(to));
  }
  const auto look_up = [](const auto& map, const std::string& name) {
    const auto found = map.find(name);
    return found == map.end() ? std::optional<std::string>() : found->second;
  };
  KeyReport report{.weights_key = place.key};
  LOCKSTEP_ASSIGN(
      Dict renamed,
      internal::rekey(
          *place.value.as_dict(),
          [&](const std::string& name) { return look_up(names, name); },
          report,
          internal::OtherKeys::kFollow));
  internal::map_metadata(renamed, [&](const std::string& path) {
    return look_up(parents, path);
  });
  return Edited{
      .root = with_weights(root, place, std::move(renamed)),
      .report = std::move(report)};
}

std::string leftovers_text(const PositionMatch& match) {
  return key_list_text("Missing", match.missing_keys) +
         key_list_text("Unexpected", match.unexpected_keys);
}

} // namespace lockstep::ckpt
