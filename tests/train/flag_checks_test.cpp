// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/flag_checks.h"

#include <gmock/gmock.h>

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Settings, and what is said of them.
struct Idle {
  TrainConfig config = {};
  std::string text = {};
  /// Of the data; empty for those of a program.
  std::string data = "fashion-mnist";
};

std::vector<std::string> said(const TrainConfig& config, std::string data) {
  const std::vector<c10::Device> devices{c10::kCPU};
  return idle_flags(
      config,
      {.data_name = std::move(data)},
      classification(),
      devices);
}

TEST(IdleFlags, AreSaid) {
  const std::vector<Idle> rows{
      {{.opt = "adamw", .momentum = 0.5},
       "--momentum has no effect on --opt adamw"},
      {{.opt = "adam", .nesterov = true},
       "--nesterov has no effect on --opt adam"},
      {{.partial = true},
       "--partial has no effect without --initial-checkpoint"},
      {{.target = "price"}, "--target has no effect on --data fashion-mnist"},
      {{.target = "price"},
       "--target has no effect on --data folder",
       "folder"},
      {{.val_split = 0.3},
       "--val-split has no effect on --data mnist",
       "mnist"},
      {{.on_bad_image = "skip"},
       "--on-bad-image has no effect on --data fashion-mnist"},
      {{.cache = "disk"}, "--cache has no effect on --data idx", "idx"},
      {{.cache = "ram"},
       "--cache has no effect on data of the program's own",
       ""},
      {{.initial_checkpoint = "a.pt", .output = "runs/a", .test_only = true},
       "--output has no effect with --test-only, which writes nothing"},
      {{.initial_checkpoint = "a.pt", .name = "a", .test_only = true},
       "--name has no effect with --test-only, which writes nothing"}};
  for (const Idle& row : rows) {
    EXPECT_THAT(said(row.config, row.data), ElementsAre(row.text));
  }
}

TEST(IdleFlags, WhatHasAnEffectIsNotSaid) {
  const std::vector<Idle> rows{
      {{}, ""},
      {{.momentum = 0.5, .nesterov = true}, ""},
      {{.opt = "own:Lion", .momentum = 0.5}, ""},
      {{.initial_checkpoint = "a.pt", .partial = true}, ""},
      {{.target = "price", .cache = "disk"}, "", "csv"},
      {{.val_split = 0.3, .on_bad_image = "skip"}, "", "folder"},
      {{.output = "runs", .name = "a"}, ""}};
  for (const Idle& row : rows) {
    EXPECT_THAT(said(row.config, row.data), IsEmpty());
  }
}

} // namespace
} // namespace lockstep::train
