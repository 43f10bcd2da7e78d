// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>

#include "cli_train/command_flags.h"
#include "cli_train/commands.h"
#include "cli_train/mask_files.h"
#include "cli_train/prediction_job.h"
#include "cli_train/predictions.h"
#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli_train {
namespace {

constexpr const train::TrainCommand& kPredict = train::kTrainCommands[3];
static_assert(kPredict.name == "predict");

constexpr std::string_view kPredictAbout =
    "Shows images to a trained model: the best checkpoint of a run folder, or\n"
    "a checkpoint file. The file says which model it is, the size of images\n"
    "and the names of classes. IMAGES are files and folders; - is a list of\n"
    "paths on standard input.";

constexpr std::array<std::string_view, 3> kFormats{"csv", "jsonl", "npz"};
constexpr std::array<std::string_view, 2> kBadImages{"stop", "skip"};

/// The whole of standard input.
std::string read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> block{};
  for (std::size_t count = 1; count > 0;) {
    count = std::fread(block.data(), 1, block.size(), stdin);
    text.append(block.data(), count);
  }
  return text;
}

/// Where rows go: standard output at once, or a file at the end.
class RowOutput {
 public:
  explicit RowOutput(std::string file) : file_(std::move(file)) {}

  void write(const std::string& rows) {
    if (file_.empty()) {
      print(rows);
    } else {
      text_ += rows;
    }
  }
  void finish() {
    if (!file_.empty()) {
      write_file_atomically(real_fs(), file_, text_).value();
    }
  }

 private:
  std::string file_;
  std::string text_ = {};
};

void write_rows(
    PredictionJob& job,
    const PredictionOptions& options,
    const std::string& format,
    const std::string& file) {
  RowOutput output(file);
  const bool is_csv = format == "csv";
  output.write(is_csv ? csv_header(options) : "");
  job.run([&](const ScoredImages& images) {
    std::string rows;
    const auto width = static_cast<std::size_t>(images.scores.size(1));
    const auto* scores = images.scores.const_data_ptr<float>();
    for (const std::string& path : images.paths) {
      const std::span<const float> row(scores, width);
      rows +=
          is_csv ? csv_row(options, path, row) : json_row(options, path, row);
      scores += width;
    }
    output.write(rows);
  });
  output.finish();
}

void write_arrays(
    PredictionJob& job,
    const PredictionOptions& options,
    const std::string& file) {
  std::vector<std::string> paths;
  std::vector<at::Tensor> scores;
  job.run([&](ScoredImages images) {
    std::ranges::move(images.paths, std::back_inserter(paths));
    scores.push_back(std::move(images.scores));
  });
  if (scores.empty()) {
    return; // no image could be read, and the job says so
  }
  write_npz(options, paths, at::cat(scores), file);
}

void write_predictions(
    const CommandFlags& flags,
    PredictionJob& job,
    const std::string& format) {
  const PredictionOptions options{
      .kind = job.kind(),
      .names = job.data().names(),
      .top = flags.number("--top", 0)};
  const std::string file = flags.text("--output");
  if (format == "npz") {
    if (file.empty()) {
      flags.fail("--format npz needs a file", "--output scores.npz");
    }
    write_arrays(job, options, file);
    return;
  }
  if (options.kind == train::OutputKind::kMaps) {
    flags.fail(
        "the model gives maps of values, which are no rows",
        "--format npz --output maps.npz writes them");
  }
  write_rows(job, options, format, file);
}

void predict_masks(const CommandFlags& flags, PredictionJob& job) {
  if (flags.has("--top") || flags.has("--format")) {
    flags.fail(
        "the model gives masks; --top and --format are for classes and values",
        "leave them out");
  }
  const std::string folder = flags.text("--output");
  if (folder.empty()) {
    flags.fail("masks need a folder", "--output DIR");
  }
  print("path,mask\n");
  write_masks(
      job,
      folder,
      [](const std::string& path, const std::string& mask) {
        print(format("{},{}\n", csv_field(path), csv_field(mask)));
      });
}

} // namespace

int predict_command(Arguments args) {
  const CommandFlags flags(kPredict, args);
  if (flags.has("--help")) {
    flags.print_help(kPredictAbout);
    return 0;
  }
  const std::vector<std::string>& words = flags.arguments();
  if (words.size() < 2) {
    flags.fail(
        words.empty() ? "no run or checkpoint is named" : "no image is named",
        "'lockstep predict runs/animals photos'");
  }
  const std::string format = flags.choice("--format", kFormats);
  PredictionJob job(
      {.model = words.front(),
       .images = {words.begin() + 1, words.end()},
       .batch_size = flags.number("--batch-size", 64),
       .workers = flags.number("--workers", 1, kMostWorkers),
       .devices = flags.devices(),
       .skips_bad_images = flags.choice("--on-bad-image", kBadImages) == "skip",
       .read_list = read_standard_input});
  if (job.kind() == train::OutputKind::kMasks) {
    predict_masks(flags, job);
  } else {
    write_predictions(flags, job, format);
  }
  return job.finish();
}

} // namespace lockstep::cli_train
