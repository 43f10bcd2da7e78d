// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cli_train/trained_run.h"

#include <array>
#include <filesystem>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/data/augment.h"
#include "tests/cli_train/process.h"

namespace lockstep::test {
namespace {

constexpr std::array<const char*, 3> kClasses{"cat", "dog", "\u732b"};
constexpr int kPictures = 20;

} // namespace

void write_picture(const std::string& path, int channel, int index) {
  Image image{
      .shape = {
          .channels = 3,
          .height = 16 + index % 7,
          .width = 16 + index % 5}};
  for (std::int64_t i = 0; i < image.shape.numel(); ++i) {
    // Noise of a linear congruential generator (Numerical Recipes).
    const auto noise =
        (static_cast<std::uint32_t>(i + 7919 * index) * 1664525U +
         1013904223U) >>
        26U;
    const bool is_own = i % 3 == channel;
    image.pixels.push_back(
        static_cast<std::uint8_t>((is_own ? 150U : 40U) + noise));
  }
  std::filesystem::create_directories(
      std::filesystem::path(path).parent_path());
  write_png(path, image);
}

std::string changed_checkpoint(
    const std::string& from,
    const std::string& to,
    const std::function<void(ckpt::Value& root)>& change) {
  ckpt::Value root = ckpt::load(from).value().root;
  change(root);
  ckpt::save(to, root).value();
  return to;
}

void drop_entry(ckpt::Value& root, std::string_view key) {
  ckpt::Dict rest;
  for (const auto& [name, value] : root.as_dict()->items) {
    if (name.text() != key) {
      rest.items.emplace_back(name, value);
    }
  }
  root = ckpt::Value(std::move(rest));
}

ProgramOutcome run_program(const std::vector<std::string>& args) {
  Process program(args);
  ProgramOutcome outcome;
  outcome.status = program.wait();
  outcome.out = program.output();
  outcome.err = program.errors();
  return outcome;
}

TrainedRun::TrainedRun() {
  for (std::size_t c = 0; c < kClasses.size(); ++c) {
    for (int i = 0; i < kPictures; ++i) {
      write_picture(
          format("{}/{}/{:02}.png", data(), kClasses.at(c), i),
          static_cast<int>(c),
          i);
    }
  }
  const ProgramOutcome outcome = run_program(
      {"train",
       "--data=" + data(),
       "--model=mlp",
       "--img-size=12",
       "--epochs=6",
       "--batch-size=8",
       "--lr=0.02",
       "--threads=1",
       "--devices=cpu",
       "--quiet",
       "--output=" + run()});
  problem_ = outcome.status == 0
                 ? ""
                 : format("status {}: {}", outcome.status, outcome.err);
}

const TrainedRun& TrainedRun::get() {
  static const TrainedRun made;
  return made;
}

std::vector<std::string> TrainedRun::pictures(const std::string& name) const {
  std::vector<std::string> paths;
  for (int i = 0; i < kPictures; ++i) {
    paths.push_back(format("{}/{}/{:02}.png", data(), name, i));
  }
  return paths;
}

} // namespace lockstep::test
