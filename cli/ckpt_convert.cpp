// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt convert IN OUT`: another format, type or device tag.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/convert_choice.h"
#include "cli/edit_command.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/target.h"
#include "cli/target_format.h"
#include "cli/usage_errors.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::cli {
namespace {

constexpr const char* kConvertSchema = "lockstep.ckpt.convert/1";
constexpr std::size_t kMaxShownChanges = 1000;

struct ConvertArgs {
  std::string file = {};
  Target target = {};
  std::string to = {};
  std::string dtype = {};
  std::string map_location = {};
  std::string shard = {};
  bool clone_views = false;
  bool all = false;
  bool namespaces = false;
};

bool has_shards(const ckpt::FormatWriter& writer) {
  return writer.index_path != nullptr;
}

bool is_for_tensors(const ckpt::FormatWriter& writer) {
  return writer.is_tensors_only;
}

// "safetensors or npz"
std::string writers_that(bool (*fits)(const ckpt::FormatWriter& writer)) {
  std::vector<std::string> names;
  for (const ckpt::FormatWriter& writer : ckpt::format_writers()) {
    if (fits(writer)) {
      names.emplace_back(writer.name);
    }
  }
  return join(names, " or ");
}

Result<std::optional<ckpt::DType>> parse_dtype(const std::string& name) {
  if (name.empty()) {
    return std::optional<ckpt::DType>();
  }
  const auto dtype = ckpt::dtype_by_name(name);
  if (!dtype) {
    return usage_error(
        format("unknown dtype '{}'", escape(name)),
        "PyTorch's names: float64, float32, float16, bfloat16");
  }
  return dtype;
}

Json change_json(const ckpt::TensorChange& row) {
  return Json::object()
      .set("name", row.name)
      .set("from", row.from)
      .set("to", row.to)
      .set("from_bytes", row.from_bytes)
      .set("to_bytes", row.to_bytes);
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

std::vector<std::string> warnings_of(
    const ConvertArgs& args,
    const Chosen& chosen,
    const ckpt::Converted& converted,
    const Written& written) {
  std::vector<std::string> warnings = chosen.warnings;
  if (const auto names = ckpt::overflowed(converted); !names.empty()) {
    warnings.push_back(format(
        "numbers beyond {} became infinite in {}; bfloat16 has the range of "
        "float32",
        args.dtype,
        some_names(names)));
  }
  if (!converted.kept.empty()) {
    warnings.push_back(format(
        "{} of another type than {}: {}",
        counted(converted.kept.size(), "tensor stays", "tensors stay"),
        args.dtype,
        some_names(converted.kept)));
  }
  if (written.tensors == 0) {
    warnings.emplace_back(
        "there is no tensor with bytes in it; 'lockstep ckpt show FILE' prints "
        "what is there");
  }
  return warnings;
}

std::string convert_text(
    const ConvertArgs& args,
    const Chosen& chosen,
    const ckpt::Converted& converted,
    const Written& written) {
  const auto& changes = converted.changes;
  std::string text = args.target.dry_run ? changes_text(changes) : "";
  if (!changes.empty()) {
    text += format(
        "{} of {} changed\n",
        with_commas(changes.size()),
        counted(written.tensors, "tensor"));
  }
  for (const std::string& warning :
       warnings_of(args, chosen, converted, written)) {
    text += format("warning: {}\n", warning);
  }
  return text + left_out_text(chosen, written.format) + wrote_text(written);
}

Json convert_json(
    const ConvertArgs& args,
    const ckpt::Checkpoint& file,
    const Chosen& chosen,
    const ckpt::Converted& converted,
    const Written& written) {
  Json json = Json::object();
  json.set("from_format", file.format)
      .set("changed_tensors", Json::array(converted.changes, change_json))
      .set("overflowed", Json::array(ckpt::overflowed(converted)))
      .set("left_out", Json::array(left_out_names(chosen)))
      .set(
          "warnings",
          Json::array(warnings_of(args, chosen, converted, written)));
  set_written(json, written);
  return json;
}

bool keeps_format(const ckpt::Checkpoint& file, const std::string& to) {
  const auto same = ckpt::writer_of(file);
  return same && *same == to;
}

// What may change in place if it is forced: the same format with everything in
// it, but perhaps fewer bits of each number.
OwnInput own_input(
    const ckpt::Checkpoint& file,
    const Chosen& chosen,
    const std::string& to) {
  return keeps_format(file, to) && chosen.left_out.empty()
             ? OwnInput::kNeedsForce
             : OwnInput::kStays;
}

ckpt::SaveOptions save_options(
    const ConvertArgs& args,
    const ckpt::Checkpoint& file,
    const std::string& to) {
  ckpt::SaveOptions options{.clone_views = args.clone_views};
  if (ckpt::format_to_write(to)->writer.keeps_records) {
    options.extra_records = file.extra_records;
  }
  return options;
}

// What the format has no place for is left out without --all, unless it lies
// among the weights.
Result<Written> with_flag(
    Result<Written> saved,
    const ConvertArgs& args,
    const ckpt::Value& root) {
  if (!saved && saved.error().detail == "E_NOT_TENSOR" && args.all &&
      !ckpt::locate_weights(root).key.empty()) {
    saved.error().hint = "without --all only the weights are written";
  }
  return saved;
}

Result<ckpt::Checkpoint>
load_input(const Input& input, const ConvertArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(ckpt::Checkpoint file, input.load(common.load));
  warn_of_left_out(file);
  if (args.namespaces) {
    LOCKSTEP_ASSIGN(file.root, ckpt::plain_namespaces(file.root));
  }
  return file;
}

Result<int> run_convert(const ConvertArgs& args, const Common& common) {
  const std::string to =
      args.to.empty() ? format_by_name(args.target.path) : args.to;
  LOCKSTEP_TRY(check_format(to));
  LOCKSTEP_ASSIGN(const auto dtype, parse_dtype(args.dtype));
  LOCKSTEP_ASSIGN(const std::uint64_t shard_bytes, parse_bytes(args.shard));
  if (shard_bytes != 0 && !has_shards(ckpt::format_to_write(to)->writer)) {
    return usage_error(format(
        "--shard is for {}; expected that format, got {}",
        writers_that(has_shards),
        to));
  }
  LOCKSTEP_ASSIGN(const auto lock, lock_own_input(args.target, args.file));
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, load_input(input, args, common));
  LOCKSTEP_ASSIGN(
      const Chosen chosen,
      ckpt::in_file(choose_values(file, to, args.all), input.name()));
  LOCKSTEP_ASSIGN(
      const auto target,
      CheckedTarget::check(
          args.target,
          {.format = to,
           .is_format_asked = !args.to.empty(),
           .inputs = {args.file},
           .own_input = own_input(file, chosen, to),
           .result = shard_bytes != 0 ? "the shards and their index"
                                      : "the converted file",
           .shard_bytes = shard_bytes,
           .limits = common.load.limits,
           .lock = lock.get()}));
  LOCKSTEP_ASSIGN(
      const ckpt::Converted converted,
      ckpt::convert_tensors(
          chosen.root,
          {.dtype = dtype,
           .map_location = args.map_location,
           .clone_views = args.clone_views,
           .max_expanded_bytes = common.load.limits.max_expanded_bytes}));
  // An error without a path is one of reading.
  LOCKSTEP_ASSIGN(
      const Written written,
      ckpt::in_file(
          with_flag(
              target.save(file, converted.root, save_options(args, file, to)),
              args,
              file.root),
          input.name()));
  if (common.json) {
    print_result(
        kConvertSchema,
        convert_json(args, file, chosen, converted, written));
  } else {
    print(convert_text(args, chosen, converted, written));
  }
  return written.tensors == 0 ? 1 : 0;
}

} // namespace

Runner setup_convert(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ConvertArgs>();
  app.add_option("IN", args->file, "checkpoint; - is standard input")
      ->required();
  add_output(app, args->target.path);
  app.add_option(
      "--to",
      args->to,
      "format: " + format_names() + "; default: by OUT's name");
  app.add_option("--dtype", args->dtype, "type of floating-point tensors");
  app.add_option(
      "--map-location",
      args->map_location,
      "device tag for all tensors, such as cpu or cuda:0");
  app.add_flag(
      "--clone-views",
      args->clone_views,
      "write only the parts of storages that tensors use");
  app.add_option(
      "--shard",
      args->shard,
      "split " + writers_that(has_shards) +
          " into files of at most this size: 5GB");
  app.add_flag(
      "--all",
      args->all,
      "keep everything, not only the weights, in " +
          writers_that(is_for_tensors));
  add_namespace_flag(app, args->namespaces);
  add_target_flags(app, args->target);
  return [args, &common] { return run_convert(*args, common); };
}

} // namespace lockstep::cli
