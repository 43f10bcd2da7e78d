// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/state_part.h"

#include <algorithm>
#include <concepts>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

template <class T>
StatePart part_of(
    const std::string& key,
    T& number,
    std::optional<T> (*read)(const ckpt::Value&)) {
  return {
      .key = key,
      .save = [&number](ValueBuilder&) { return ckpt::Value(number); },
      .load =
          [key, &number, read](const ckpt::Value& saved) {
            const std::optional<T> value = read(saved);
            if (!value) {
              raise(
                  {.code = ErrorCode::kMismatch,
                   .op = "train.resume",
                   .message = format(
                       "'{}' must be a {}number, got {}",
                       key,
                       std::integral<T> ? "whole " : "",
                       saved.type_name()),
                   .detail = "E_BAD_STATE"});
            }
            number = *value;
          }};
}

} // namespace

StatePart number_part(const std::string& key, std::int64_t& number) {
  return part_of<std::int64_t>(key, number, [](const ckpt::Value& saved) {
    const std::int64_t* value = saved.as_int();
    return value == nullptr ? std::nullopt : std::optional(*value);
  });
}

StatePart number_part(const std::string& key, double& number) {
  return part_of<double>(key, number, [](const ckpt::Value& saved) {
    const auto value = saved.number();
    return value ? std::optional(*value) : std::nullopt;
  });
}

RunState& RunState::add(StatePart part) {
  const bool is_taken =
      std::ranges::find(parts_, part.key, &StatePart::key) != parts_.end();
  if (part.key.empty() || is_taken) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.state",
         .message = format(
             "a part of a run needs a key of its own, got '{}'",
             escape(part.key))});
  }
  parts_.push_back(std::move(part));
  return *this;
}

RunState& RunState::add(std::vector<StatePart> parts) {
  for (StatePart& part : parts) {
    add(std::move(part));
  }
  return *this;
}

ckpt::Value RunState::save() const {
  ValueBuilder builder;
  ckpt::Dict root;
  for (const StatePart& part : parts_) {
    root.items.emplace_back(part.key, part.save(builder));
  }
  return root;
}

std::vector<std::string> RunState::missing(const ckpt::Value& root) const {
  std::vector<std::string> needed;
  std::vector<std::string> missing;
  for (const StatePart& part : parts_) {
    if (root.find(part.key) != nullptr) {
      continue;
    }
    if (part.if_missing == IfMissing::kRefuse) {
      needed.push_back(part.key);
    } else if (part.if_missing == IfMissing::kWarn) {
      missing.push_back(part.key);
    }
  }
  if (!needed.empty()) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.state",
         .message = format("the checkpoint has no '{}'", join(needed, "', '")),
         .hint = "'lockstep ckpt FILE' shows what it holds",
         .detail = "E_BAD_STATE"});
  }
  return missing;
}

std::vector<std::string> RunState::load(const ckpt::Value& root) const {
  std::vector<std::string> missing = this->missing(root);
  for (const StatePart& part : parts_) {
    if (const ckpt::Value* saved = root.find(part.key)) {
      part.load(*saved);
    }
  }
  return missing;
}

} // namespace lockstep::train
