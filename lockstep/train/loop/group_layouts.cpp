// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/group_layouts.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>

namespace lockstep::train {
namespace {

// A function of a parameter that tells the groups apart, and what it is called.
struct Grouping {
  const char* name = "";
  std::size_t (*class_of)(const Param& param) = nullptr;
};

bool is_bias(const Param& param) {
  return param.name.ends_with("bias");
}

// Sources: timm.optim.param_groups_weight_decay; torchvision's
// set_weight_decay; ultralytics' build_optimizer.
constexpr std::array kGroupings{
    Grouping{
        "parameters of one dimension, and the others",
        [](const Param& p) -> std::size_t { return p.tensor.dim() <= 1; }},
    Grouping{
        "biases, and the others",
        [](const Param& p) -> std::size_t { return is_bias(p); }},
    Grouping{
        "parameters of norms, and the others",
        [](const Param& p) -> std::size_t { return p.is_norms; }},
    Grouping{
        "biases, other parameters of norms, and the rest",
        [](const Param& p) -> std::size_t {
          return is_bias(p) ? 2 : p.is_norms;
        }},
    Grouping{
        "parameters of norms, other biases, and the rest",
        [](const Param& p) -> std::size_t {
          return p.is_norms ? 2 : is_bias(p);
        }},
};

// A way and whether the class that scripts spare has no weight decay, and the
// others do. Decays do not tell whether a script made groups by such classes.
struct Candidate {
  UsualGrouping way = {};
  bool by_classes = true;
  bool spares_decay = false;
};

/// Numbers of the model's parameters.
using Order = std::vector<std::size_t>;

std::string_view layer_of(const Param& param) {
  const std::string_view name = param.name;
  return name.substr(0, name.rfind('.') + 1);
}

// The model's order, or the last layer first.
Order by_layers(const std::vector<Param>& params, bool is_reversed) {
  Order order(params.size());
  std::iota(order.begin(), order.end(), 0U);
  Order layers(params.size(), 0);
  for (std::size_t i = 1; i < params.size(); ++i) {
    layers[i] =
        layers[i - 1] + (layer_of(params[i]) != layer_of(params[i - 1]));
  }
  if (is_reversed) {
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
      return layers[i];
    });
  }
  return order;
}

// Whether parameter `param` can be number `place` of `group`.
bool takes(const SavedGroup& group, std::size_t place, const Param& param) {
  if (place >= group.shapes.size()) {
    return false;
  }
  const auto& shape = group.shapes[place];
  return !shape || param.tensor.sizes() == at::IntArrayRef(*shape);
}

// Whether each group has its size and, in the order of the model, its shapes.
bool fits(
    const std::vector<Param>& params,
    const std::vector<SavedGroup>& groups,
    const Assignment& assignment) {
  std::vector<std::size_t> used(groups.size(), 0);
  for (std::size_t i = 0; i < assignment.size(); ++i) {
    const std::size_t g = assignment[i];
    if (!takes(groups[g], used[g]++, params[i])) {
      return false;
    }
  }
  return assignment.size() == params.size();
}

// Looks for ways to deal out the parameters one by one.
class Dealing {
 public:
  Dealing(
      const std::vector<Param>& params,
      const std::vector<SavedGroup>& groups)
      : params_(params), groups_(groups), used_(groups.size(), 0) {}

  // False if it stopped before all ways were seen.
  bool search(std::vector<Assignment>& found) {
    constexpr std::size_t kMaxVisits = 100'000;
    if (path_.size() == params_.size()) {
      found.push_back(path_);
      return true;
    }
    if (++visits_ > kMaxVisits) {
      return false;
    }
    const Param& param = params_[path_.size()];
    for (std::size_t g = 0; g < groups_.size() && found.size() < 2; ++g) {
      if (!takes(groups_[g], used_[g], param)) {
        continue;
      }
      path_.push_back(g);
      ++used_[g];
      const bool is_whole = search(found);
      --used_[g];
      path_.pop_back();
      if (!is_whole) {
        return false;
      }
    }
    return true;
  }

 private:
  const std::vector<Param>& params_;
  const std::vector<SavedGroup>& groups_;
  Assignment path_ = {};
  std::vector<std::size_t> used_;
  std::size_t visits_ = 0;
};

// Groups one after the other, each of whole layers or of one parameter. Empty
// if one ends within a layer.
Assignment in_blocks(
    const std::vector<Param>& params,
    const std::vector<SavedGroup>& groups,
    const Order& order) {
  const bool is_single = std::ranges::all_of(
      groups,
      [](const SavedGroup& group) { return group.shapes.size() == 1; });
  Assignment assignment(params.size());
  std::size_t next = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!is_single && next != 0 && next < order.size() &&
        layer_of(params[order[next - 1]]) == layer_of(params[order[next]])) {
      return {};
    }
    for (std::size_t i = 0; i < groups[g].shapes.size(); ++i) {
      assignment[order[next++]] = g;
    }
  }
  return assignment;
}

void add_candidate(std::vector<Candidate>& candidates, Candidate candidate) {
  const bool is_known = std::ranges::any_of(candidates, [&](auto& known) {
    if (known.way.assignment != candidate.way.assignment) {
      return false;
    }
    known.by_classes &= candidate.by_classes;
    known.spares_decay |= candidate.spares_decay;
    return true;
  });
  if (!is_known) {
    candidates.push_back(std::move(candidate));
  }
}

// Classes may be in any order of groups.
void add_grouping(
    std::vector<Candidate>& candidates,
    const Grouping& grouping,
    const std::vector<Param>& params,
    const std::vector<SavedGroup>& groups) {
  std::map<std::size_t, std::size_t> classes;
  for (const Param& param : params) {
    classes.emplace(grouping.class_of(param), 0);
  }
  if (classes.size() != groups.size()) {
    return;
  }
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0U);
  do {
    auto next = order.begin();
    bool spares_decay = true;
    for (auto& [id, group] : classes) {
      group = *next++;
      spares_decay &= (id == 0) == (groups[group].weight_decay > 0);
    }
    Candidate candidate{
        .way = {.name = grouping.name},
        .spares_decay = spares_decay};
    for (const Param& param : params) {
      candidate.way.assignment.push_back(classes.at(grouping.class_of(param)));
    }
    if (fits(params, groups, candidate.way.assignment)) {
      add_candidate(candidates, std::move(candidate));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Layer by layer, each in up to two groups: timm's layer decay. A group is
// opened by its first parameter. Empty if it does not work out.
Assignment in_layers(
    const std::vector<Param>& params,
    const std::vector<SavedGroup>& groups,
    const Order& order) {
  struct Open {
    std::size_t group = 0;
    std::size_t room = 0;
  };
  std::array<Open, 2> open = {};
  std::size_t next = 0;
  Assignment assignment(params.size());
  for (const std::size_t i : order) {
    const bool is_spared = params[i].tensor.dim() <= 1;
    Open& own = open.at(is_spared ? 1 : 0);
    if (own.room == 0) {
      if (next == groups.size() ||
          is_spared == (groups[next].weight_decay > 0)) {
        return {};
      }
      own = {.group = next, .room = groups[next].shapes.size()};
      ++next;
    }
    --own.room;
    assignment[i] = own.group;
  }
  return assignment;
}

} // namespace

std::vector<Assignment> ways_by_shapes(
    const std::vector<Param>& params,
    const std::vector<SavedGroup>& groups) {
  std::vector<Assignment> found;
  const bool has_all = std::ranges::all_of(groups, [](const auto& group) {
    return std::ranges::all_of(group.shapes, [](const auto& shape) {
      return shape.has_value();
    });
  });
  if (!has_all || !Dealing(params, groups).search(found)) {
    found.assign(2, {});
  }
  return found;
}

std::vector<UsualGrouping> usual_groupings(
    const std::vector<Param>& params,
    const std::vector<SavedGroup>& groups) {
  std::vector<Candidate> candidates;
  for (const Grouping& grouping : kGroupings) {
    add_grouping(candidates, grouping, params, groups);
  }
  for (const bool is_reversed : {false, true}) {
    const Order order = by_layers(params, is_reversed);
    const std::string end = is_reversed ? ", the last one first" : "";
    for (UsualGrouping& way : std::vector<UsualGrouping>{
             {in_blocks(params, groups, order),
              "one part after the other" + end},
             {in_layers(params, groups, order),
              "one layer after the other" + end}}) {
      if (fits(params, groups, way.assignment)) {
        add_candidate(candidates, {.way = way, .by_classes = false});
      }
    }
  }
  const bool some_spare =
      std::ranges::any_of(candidates, &Candidate::spares_decay);
  std::vector<UsualGrouping> ways;
  for (Candidate& candidate : candidates) {
    if (!candidate.by_classes || candidate.spares_decay || !some_spare) {
      ways.push_back(std::move(candidate.way));
    }
  }
  return ways;
}

} // namespace lockstep::train
