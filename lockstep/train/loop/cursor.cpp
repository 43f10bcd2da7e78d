// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/cursor.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/observers/loss_watch.h"

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
      {.key = "top1_sum", .count = &cursor.sums.top1},
      {.key = "top5_sum", .count = &cursor.sums.top5},
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
  return dict;
}

void load_fields(const ckpt::Value& saved, Cursor& cursor) {
  Cursor read = cursor;
  for (const Field& field : fields_of(read)) {
    const ckpt::Value* value = saved.find(field.key);
    if (value == nullptr) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "train.resume",
           .message = format("'cursor' has no '{}'", field.key),
           .detail = "E_BAD_STATE"});
    }
    if (field.count != nullptr) {
      *field.count = to_count(field.key, *value);
    } else {
      *field.real = to_real(field.key, *value);
    }
  }
  cursor = read;
}

} // namespace

void Cursor::count(
    std::int64_t size,
    std::int64_t ranks,
    std::int64_t epoch_samples) {
  // The last round may be filled up with samples that were read before.
  const std::int64_t read = std::min(size * ranks, epoch_samples - samples);
  ++batch;
  ++step;
  samples += read;
  total_samples += read;
}

void Cursor::finish_epoch() {
  ++epoch;
  batch = 0;
  samples = 0;
  sums = {};
}

bool Cursor::take_best(const EpochRecord& record) {
  if (!is_finite(record)) {
    return false;
  }
  if (best_by == BestBy::kAccuracy) {
    const double accuracy = record.test.value_or(Score()).top1.value_or(0.0);
    const bool is_best = accuracy > best_acc1;
    best_acc1 = std::max(best_acc1, accuracy);
    return is_best;
  }
  const double loss = best_by == BestBy::kTestLoss
                          ? record.test.value_or(Score()).loss
                          : record.train.loss;
  const bool is_best = !best_loss || loss < *best_loss;
  best_loss = is_best ? loss : *best_loss;
  return is_best;
}

std::string Cursor::best_text() const {
  if (best_by == BestBy::kAccuracy) {
    return best_acc1 > 0 ? format("best Acc@1 {}", shortest(best_acc1))
                         : "no best epoch";
  }
  return best_loss
             ? format("best {} {}", best_column(best_by), shortest(*best_loss))
             : "no best epoch";
}

namespace {

StatePart best_part(Cursor& cursor) {
  if (cursor.best_by == BestBy::kAccuracy) {
    return {
        .key = "best_acc1",
        .save =
            [&cursor](ValueBuilder&) { return ckpt::Value(cursor.best_acc1); },
        .load =
            [&cursor](const ckpt::Value& saved) {
              cursor.best_acc1 = to_real("best_acc1", saved);
            },
        .if_missing = IfMissing::kWarn};
  }
  const std::string key = format("best_{}", best_column(cursor.best_by));
  return {
      .key = key,
      .save =
          [&cursor](ValueBuilder&) {
            return cursor.best_loss ? ckpt::Value(*cursor.best_loss)
                                    : ckpt::Value();
          },
      .load =
          [&cursor, key](const ckpt::Value& saved) {
            cursor.best_loss = saved.is_none()
                                   ? std::nullopt
                                   : std::optional(to_real(key, saved));
          },
      .if_missing = IfMissing::kWarn};
}

} // namespace

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
               cursor.sums = {};
             }
           },
       .if_missing = IfMissing::kIgnore}};
}

} // namespace lockstep::train
