// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt convert IN OUT`: another format, type or device tag.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/edit_command.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/dtype.h"
#include "lockstep/ckpt/edit/convert.h"
#include "lockstep/ckpt/format_table.h"

namespace lockstep::cli {
namespace {

constexpr const char* kConvertSchema = "lockstep.ckpt.convert/1";
constexpr std::size_t kMaxShownChanges = 1000;

struct ConvertArgs {
  EditArgs edit = {};
  std::string to = {};
  std::string dtype = {};
  std::string map_location = {};
  std::string shard = {};
  bool clone_views = false;
};

// What a file's name says about its format.
struct Extension {
  std::string_view ending = {};
  std::string_view format = {};
};
constexpr std::array kExtensions{
    Extension{".safetensors", "safetensors"},
    Extension{".npz", "npz"}};

Error bad_argument(std::string message, std::string hint = {}) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = std::move(message),
      .hint = std::move(hint)};
}

std::string format_of(const ConvertArgs& args) {
  if (!args.to.empty()) {
    return args.to;
  }
  for (const Extension& row : kExtensions) {
    if (args.edit.output.ends_with(row.ending)) {
      return std::string(row.format);
    }
  }
  return "pt";
}

Status check_format(const std::string& name) {
  std::vector<std::string> names;
  for (const ckpt::FormatWriter& writer : ckpt::format_writers()) {
    names.emplace_back(writer.name);
  }
  return std::ranges::find(names, name) != names.end()
             ? Status()
             : Status(bad_argument(format(
                   "unknown format '{}'; expected one of {}",
                   escape(name),
                   join(names, ", "))));
}

struct Unit {
  std::string_view name = {};
  std::uint64_t bytes = 0;
};
constexpr std::array kUnits{
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"KB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"KiB", 1ULL << 10},
    Unit{"MiB", 1ULL << 20},
    Unit{"GiB", 1ULL << 30}};

// "5GB" as bytes; 0 for no text.
Result<std::uint64_t> parse_bytes(const std::string& text) {
  if (text.empty()) {
    return std::uint64_t{0};
  }
  std::uint64_t count = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, count);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const auto* found = std::ranges::find(kUnits, unit, &Unit::name);
  std::uint64_t bytes = 0;
  if (error != std::errc() || found == kUnits.end() || count == 0 ||
      __builtin_mul_overflow(count, found->bytes, &bytes)) {
    return bad_argument(
        format("'{}' is no size", escape(text)),
        "write it like 5GB or 512MiB");
  }
  return bytes;
}

Result<std::optional<ckpt::DType>> parse_dtype(const std::string& name) {
  if (name.empty()) {
    return std::optional<ckpt::DType>();
  }
  const auto dtype = ckpt::dtype_by_name(name);
  if (!dtype) {
    return bad_argument(
        format("unknown dtype '{}'", escape(name)),
        "PyTorch's names: float64, float32, float16, bfloat16");
  }
  return dtype;
}

Json changes_json(const std::vector<ckpt::TensorChange>& changes) {
  Json rows = Json::array();
  for (const ckpt::TensorChange& row : changes) {
    rows.push(Json::object()
                  .set("name", row.name)
                  .set("from", row.from)
                  .set("to", row.to)
                  .set("from_bytes", row.from_bytes)
                  .set("to_bytes", row.to_bytes));
  }
  return rows;
}

std::string changes_text(const std::vector<ckpt::TensorChange>& changes) {
  std::string text;
  for (std::size_t i = 0; i < std::min(changes.size(), kMaxShownChanges); ++i) {
    const ckpt::TensorChange& row = changes[i];
    text += format(
        "{}: {}, {} -> {}, {}\n",
        escape(row.name, 200),
        row.from,
        human_bytes(row.from_bytes),
        row.to,
        human_bytes(row.to_bytes));
  }
  return text;
}

Result<int> run_convert(const ConvertArgs& args, const Common& common) {
  const std::string to = format_of(args);
  LOCKSTEP_TRY(check_format(to));
  LOCKSTEP_TRY(check_output(args.edit));
  LOCKSTEP_ASSIGN(const auto dtype, parse_dtype(args.dtype));
  LOCKSTEP_ASSIGN(const std::uint64_t shard_bytes, parse_bytes(args.shard));
  // Mapped: each byte is looked at once, so none is kept.
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, ckpt::load(args.edit.file));
  LOCKSTEP_ASSIGN(
      const ckpt::Converted converted,
      ckpt::convert_tensors(
          file.root,
          {.dtype = dtype,
           .map_location = args.map_location,
           .clone_views = args.clone_views}));
  if (!args.edit.dry_run) {
    LOCKSTEP_TRY(ckpt::save(
        args.edit.output,
        converted.root,
        {.format = to,
         .clone_views = args.clone_views,
         .shard_bytes = shard_bytes}));
  }
  if (common.json) {
    print_result(
        kConvertSchema,
        Json::object()
            .set("from_format", file.format)
            .set("to_format", to)
            .set("output", args.edit.output)
            .set("written", !args.edit.dry_run)
            .set("changed_tensors", changes_json(converted.changes)));
    return 0;
  }
  print(
      (args.edit.dry_run ? changes_text(converted.changes) : "") +
      format(
          "{}: {} -> {}, {} tensor{} changed{}\n",
          escape(args.edit.output, 200),
          file.format,
          to,
          converted.changes.size(),
          converted.changes.size() == 1 ? "" : "s",
          args.edit.dry_run ? "; nothing was written" : ""));
  return 0;
}

} // namespace

Runner setup_convert(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ConvertArgs>();
  app.add_option("IN", args->edit.file, "checkpoint to read")->required();
  app.add_option("OUT", args->edit.output, "file to write")->required();
  std::vector<std::string> names;
  for (const ckpt::FormatWriter& writer : ckpt::format_writers()) {
    names.emplace_back(writer.name);
  }
  app.add_option(
      "--to",
      args->to,
      "format: " + join(names, ", ") + "; without it by OUT's name");
  app.add_option("--dtype", args->dtype, "type of floating-point tensors");
  app.add_option(
      "--map-location",
      args->map_location,
      "device tag of all tensors: cpu, cuda:0");
  app.add_flag(
      "--clone-views",
      args->clone_views,
      "write only what tensors see of their storages");
  app.add_option("--shard", args->shard, "largest file, like 5GB");
  app.add_flag("--dry-run", args->edit.dry_run, "write nothing");
  app.add_flag("--force", args->edit.force, "overwrite OUT if it exists");
  return [args, &common] { return run_convert(*args, common); };
}

} // namespace lockstep::cli
