// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/cursor.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/loop/loss_watch.h"

namespace lockstep::train {
namespace {

[[noreturn]] void no_number(std::string_view key, const ckpt::Value& value) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.resume",
       .message = format(
           "'{}' must be a number that is not negative, got {}",
           key,
           value.type_name()),
       .detail = "E_BAD_STATE"});
}

std::int64_t to_count(std::string_view key, const ckpt::Value& value) {
  const std::int64_t* number = value.as_int();
  if (number == nullptr || *number < 0) {
    no_number(key, value);
  }
  return *number;
}

double to_real(std::string_view key, const ckpt::Value& value) {
  const auto number = value.number();
  if (!number) {
    no_number(key, value);
  }
  return *number;
}

constexpr std::string_view kMetricSums = "metric_sums";
// Left out where it is the number of samples.
constexpr std::string_view kLossWeight = "loss_weight";

const ckpt::Value& needed(const ckpt::Value& saved, std::string_view key) {
  const ckpt::Value* const value = saved.find(key);
  if (value == nullptr) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format("'cursor' has no '{}'", key),
         .detail = "E_BAD_STATE"});
  }
  return *value;
}

/// One number of the dict `cursor`, and where it goes.
struct Field {
  std::string_view key = {};
  std::int64_t* count = nullptr;
  double* real = nullptr;
};

std::vector<Field> fields_of(Cursor& cursor) {
  return {
      {.key = "batch", .count = &cursor.batch},
      {.key = "samples", .count = &cursor.samples},
      {.key = "total_samples", .count = &cursor.total_samples},
      {.key = "loss_sum", .real = &cursor.sums.loss},
      {.key = "summed", .count = &cursor.sums.samples},
      {.key = "lr", .real = &cursor.lr}};
}

ckpt::Value save_fields(Cursor cursor) {
  ckpt::Dict dict;
  for (const Field& field : fields_of(cursor)) {
    dict.items.emplace_back(
        field.key,
        field.count != nullptr ? ckpt::Value(*field.count)
                               : ckpt::Value(*field.real));
  }
  ckpt::List sums;
  for (const double sum : cursor.sums.sums) {
    sums.items.emplace_back(sum);
  }
  dict.items.emplace_back(kMetricSums, ckpt::Value(std::move(sums)));
  if (cursor.sums.weight != static_cast<double>(cursor.sums.samples)) {
    dict.items.emplace_back(kLossWeight, cursor.sums.weight);
  }
  return dict;
}

/// Sums of metrics, for an epoch that goes on: they must be of as many.
void load_sums(const ckpt::Value& saved, Cursor& cursor) {
  const ckpt::Value* const list = saved.find(kMetricSums);
  std::vector<double> sums;
  if (list != nullptr && list->as_list() != nullptr) {
    for (const ckpt::Value& sum : list->as_list()->items) {
      sums.push_back(to_real(kMetricSums, sum));
    }
  } else if (saved.find("top1_sum") != nullptr) { // before there were others
    for (const char* key : {"top1_sum", "top5_sum", "summed"}) {
      sums.push_back(to_real(key, needed(saved, key)));
    }
    sums.push_back(0.0); // labels that were no class
  }
  if (sums.size() == cursor.sums.sums.size()) {
    cursor.sums.sums = std::move(sums);
  } else if (cursor.batch > 0) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format(
             "the epoch was begun with other metrics: the checkpoint has {} "
             "sums of them, the run {}",
             sums.size(),
             cursor.sums.sums.size()),
         .hint = "go on with the same --task, or from a checkpoint after an "
                 "epoch",
         .detail = "E_BAD_STATE"});
  }
}

void load_fields(const ckpt::Value& saved, Cursor& cursor) {
  Cursor read = cursor;
  for (const Field& field : fields_of(read)) {
    const ckpt::Value& value = needed(saved, field.key);
    if (field.count != nullptr) {
      *field.count = to_count(field.key, value);
    } else {
      *field.real = to_real(field.key, value);
    }
  }
  const ckpt::Value* const weight = saved.find(kLossWeight);
  read.sums.weight = weight == nullptr ? static_cast<double>(read.sums.samples)
                                       : to_real(kLossWeight, *weight);
  load_sums(saved, read);
  cursor = std::move(read);
}

} // namespace

void Cursor::count_samples(
    std::int64_t size,
    std::int64_t ranks,
    std::int64_t epoch_samples) {
  // The last round may be filled up with samples that were read before.
  const std::int64_t read = std::min(size * ranks, epoch_samples - samples);
  samples += read;
  total_samples += read;
}

void Cursor::finish_epoch() {
  ++epoch;
  batch = 0;
  samples = 0;
  sums.clear();
}

bool Cursor::take_best(const EpochRecord& record) {
  const std::optional<double> value = record.value(best_by.column);
  // An accuracy of 0 is what scripts save before the first test.
  if (!value || !is_finite(record) || (is_accuracy(best_by) && *value == 0)) {
    return false;
  }
  const bool is_best =
      !best ||
      (best_by.better == Better::kHigher ? *value > *best : *value < *best);
  best = is_best ? value : best;
  return is_best;
}

std::string Cursor::best_text() const {
  return lockstep::train::best_text(best_by, best);
}

namespace {

constexpr std::string_view kBest = "best_";

std::string best_key(const BestBy& best_by) {
  return format("{}{}", kBest, is_accuracy(best_by) ? "acc1" : best_by.column);
}

StatePart best_part(Cursor& cursor) {
  const bool is_number = is_accuracy(cursor.best_by);
  const std::string key = best_key(cursor.best_by);
  return {
      .key = key,
      .save =
          [&cursor, is_number](ValueBuilder&) {
            return cursor.best ? ckpt::Value(*cursor.best)
                   : is_number ? ckpt::Value(0.0)
                               : ckpt::Value();
          },
      .load =
          [&cursor, key, is_number](const ckpt::Value& saved) {
            const bool is_none =
                saved.is_none() || (is_number && to_real(key, saved) == 0);
            cursor.best =
                is_none ? std::nullopt : std::optional(to_real(key, saved));
          },
      .if_missing = IfMissing::kWarn};
}

} // namespace

bool has_other_best(const ckpt::Value& root, const BestBy& best_by) {
  const ckpt::Dict* const dict = root.as_dict();
  return dict != nullptr && root.find(best_key(best_by)) == nullptr &&
         std::ranges::any_of(dict->items, [](const ckpt::Item& item) {
           return item.first.text().starts_with(kBest);
         });
}

std::vector<StatePart> cursor_parts(
    Cursor& cursor,
    const dist::ProcessGroup& group) {
  const auto count_part = [](const std::string& key, std::int64_t& member) {
    return StatePart{
        .key = key,
        .save = [&member](ValueBuilder&) { return ckpt::Value(member); },
        .load =
            [key, &member](const ckpt::Value& saved) {
              member = to_count(key, saved);
            }};
  };
  StatePart step = count_part("step", cursor.step);
  step.if_missing = IfMissing::kIgnore;
  return {
      count_part("epoch", cursor.epoch),
      std::move(step),
      best_part(cursor),
      {.key = "cursor",
       .save =
           [&cursor, group](ValueBuilder&) {
             Cursor all = cursor;
             all.sums = cursor.sums.over(group);
             return save_fields(all);
           },
       .load =
           [&cursor, group](const ckpt::Value& saved) {
             load_fields(saved, cursor);
             if (group.rank() != 0) {
               cursor.sums.clear();
             }
           },
       .if_missing = IfMissing::kIgnore}};
}

} // namespace lockstep::train
