// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/named_state.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/optim/internal/state_reader.h"

namespace lockstep::internal {

namespace {

constexpr std::string_view kState = "state.";
constexpr std::string_view kGroups = "param_groups.";

/// "param_groups.0.weight.lr" without its front, cut at the last dot: names of
/// parameters have dots, those of options and states have none.
struct FlatKey {
  std::string param = {};
  std::string name = {};
};

std::optional<FlatKey> flat_key(
    const ckpt::Value& key,
    std::string_view front) {
  std::string_view text = key.text();
  if (!text.starts_with(front)) {
    return std::nullopt;
  }
  text.remove_prefix(front.size());
  const std::size_t dot = text.rfind('.');
  return dot == std::string_view::npos
             ? std::nullopt
             : std::optional(FlatKey{
                   std::string(text.substr(0, dot)),
                   std::string(text.substr(dot + 1))});
}

/// Dicts by name, in the order of their first entry.
class Table {
 public:
  Table(const ckpt::Dict& flat, std::string_view front) {
    for (const auto& [key, value] : flat.items) {
      if (const auto parts = flat_key(key, front)) {
        const auto [place, is_new] =
            index_.try_emplace(parts->param, rows_.size());
        if (is_new) {
          rows_.emplace_back(parts->param, ckpt::Dict());
        }
        rows_[place->second].second.items.emplace_back(parts->name, value);
      }
    }
  }

  [[nodiscard]] const auto& rows() const noexcept {
    return rows_;
  }
  [[nodiscard]] const ckpt::Dict* find(const std::string& name) const {
    const auto place = index_.find(name);
    return place == index_.end() ? nullptr : &rows_[place->second].second;
  }

 private:
  std::vector<std::pair<std::string, ckpt::Dict>> rows_ = {};
  std::unordered_map<std::string, std::size_t> index_ = {};
};

const std::vector<ckpt::Value>* names_of(const ParamGroup& group) {
  const ckpt::Value* names = group.find("param_names");
  return names == nullptr ? nullptr : names->elements();
}

/// "param_names" of a group of a file, else its ids, which may be names.
const std::vector<ckpt::Value>& saved_names(const ckpt::Value& group) {
  const std::vector<ckpt::Value>& ids =
      StateReader(group, "a loaded parameter group").items("params");
  const ckpt::Value* names = group.find("param_names");
  const std::vector<ckpt::Value>* given =
      names == nullptr ? nullptr : names->elements();
  return given != nullptr && given->size() == ids.size() ? *given : ids;
}

/// The names of `live`'s parameters if the file has all of them; else the
/// file's, in its order.
std::vector<std::string> ordered_names(
    const Table& options,
    const std::vector<ParamGroup>& live) {
  std::vector<std::string> names;
  for (const ParamGroup& group : live) {
    const auto* own = names_of(group);
    for (std::size_t i = 0; own != nullptr && i < own->size(); ++i) {
      if (options.find(std::string((*own)[i].text())) != nullptr) {
        names.emplace_back((*own)[i].text());
      }
    }
  }
  if (names.size() != options.rows().size()) {
    names.clear();
    for (const auto& [name, row] : options.rows()) {
      names.push_back(name);
    }
  }
  return names;
}

/// The options that all of `names` share, and `params`.
ckpt::Value shared_options(
    const Table& options,
    const std::vector<std::string>& names) {
  ckpt::Dict group;
  ckpt::List params;
  for (const std::string& name : names) {
    const ckpt::Dict& row = *options.find(name);
    if (params.items.empty()) {
      group = row;
    }
    const ckpt::Value first(group);
    for (const auto& [key, value] : row.items) {
      const ckpt::Value* other = first.find(key.text());
      if (other == nullptr || ckpt::to_text(*other) != ckpt::to_text(value)) {
        mismatch(
            format(
                "the parameters '{}' and '{}' have another '{}', and are in "
                "one group of the optimizer",
                escape(names.front()),
                escape(name),
                escape(key.text())),
            "give the parameters in the groups of the saved run");
      }
    }
    params.items.emplace_back(name);
  }
  group.items.emplace_back("params", std::move(params));
  return group;
}

} // namespace

ckpt::Value nested_state(
    const ckpt::Value& saved,
    const std::vector<ParamGroup>& live) {
  const ckpt::Dict* flat = saved.as_dict();
  if (flat == nullptr || saved.find("param_groups") != nullptr) {
    return saved;
  }
  const Table options(*flat, kGroups);
  if (options.rows().empty()) {
    return saved;
  }
  const std::vector<std::string> names = ordered_names(options, live);
  std::size_t expected = 0;
  for (const ParamGroup& group : live) {
    expected += group.params.size();
  }
  if (names.size() != expected) {
    mismatch(format(
        "the loaded state has {}, the optimizer {}",
        counted(names.size(), "parameter"),
        expected));
  }
  ckpt::List groups;
  auto next = names.begin();
  for (const ParamGroup& group : live) {
    const auto end = next + std::ssize(group.params);
    groups.items.push_back(
        shared_options(options, std::vector<std::string>(next, end)));
    next = end;
  }
  ckpt::Dict state;
  const Table states(*flat, kState);
  for (const auto& [name, row] : states.rows()) {
    state.items.emplace_back(name, row);
  }
  return ckpt::Value::dict(
      {{"state", std::move(state)}, {"param_groups", std::move(groups)}});
}

std::vector<std::size_t> places_of(
    const ckpt::Value& saved,
    const ParamGroup& group) {
  const std::vector<ckpt::Value>& names = saved_names(saved);
  std::unordered_map<std::string_view, std::size_t> index;
  const auto* own = names_of(group);
  for (std::size_t i = 0; own != nullptr && i < own->size(); ++i) {
    index.emplace((*own)[i].text(), i);
  }
  std::vector<std::size_t> places;
  for (const ckpt::Value& name : names) {
    const auto found = index.find(name.text());
    if (name.as_string() != nullptr && found != index.end()) {
      places.push_back(found->second);
      index.erase(found);
    }
  }
  if (places.size() != names.size()) {
    places.resize(names.size());
    std::iota(places.begin(), places.end(), 0U);
  }
  return places;
}

void refuse_other_groups(
    const std::vector<ckpt::Value>& saved,
    const std::vector<ParamGroup>& live) {
  std::unordered_map<std::string_view, std::size_t> group_of;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const auto* own = names_of(live[i]);
    for (std::size_t k = 0; own != nullptr && k < own->size(); ++k) {
      group_of.emplace((*own)[k].text(), i);
    }
  }
  for (std::size_t i = 0; i < saved.size(); ++i) {
    for (const ckpt::Value& name : saved_names(saved[i])) {
      const auto found = group_of.find(name.text());
      if (name.as_string() != nullptr && found != group_of.end() &&
          found->second != i) {
        mismatch(
            format(
                "'{}' is in group {} of the file, in group {} of the optimizer",
                escape(name.text()),
                i,
                found->second),
            "give the parameters in the groups of the saved run");
      }
    }
  }
}

std::string id_text(const ckpt::Value& id) {
  if (id.as_int() != nullptr) {
    return format("#{}", *id.as_int());
  }
  return std::string(id.text());
}

std::string kind_of_options(const ckpt::Value& group) {
  // The option that no row above has.
  constexpr std::array<std::array<std::string_view, 2>, 7> kMarks = {{
      {"max_iter", "LBFGS"},
      {"momentum_decay", "NAdam"},
      {"lr_decay", "Adagrad"},
      {"alpha", "RMSprop"},
      {"betas", "Adam"},
      {"momentum", "SGD"},
      {"rho", "Adadelta"},
  }};
  for (const auto& [option, name] : kMarks) {
    if (group.find(option) != nullptr) {
      const ckpt::Value* decoupled = group.find("decoupled_weight_decay");
      const bool is_w = name == "Adam" && decoupled != nullptr &&
                        decoupled->as_bool() != nullptr &&
                        *decoupled->as_bool();
      return is_w ? "AdamW" : std::string(name);
    }
  }
  return {};
}

} // namespace lockstep::internal
