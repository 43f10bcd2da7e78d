// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/scan_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/json_scanner.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/ckpt/formats/exported/model_parts_json.h"
#include "lockstep/ckpt/formats/exported/operator_rules.h"
#include "lockstep/ckpt/tools/scan/program_imports.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::string_view kModels = "models/";
constexpr std::string_view kOldParts = "serialized_";
constexpr std::string_view kPacked = ".pt";
constexpr std::string_view kCompiledFolder = "data/aotinductor/";

// Of the tables, and of the pickles that older versions wrote.
constexpr auto kPayloadFolders = std::to_array<std::string_view>(
    {"data/weights/", "data/constants/", "data/sample_inputs/"});
// PyTorch looks at the name alone.
constexpr auto kObjects =
    std::to_array<std::string_view>({"custom_obj", "opaque_obj"});

constexpr std::uint64_t kMaxLevels = 300;

/// Goes over all values of the JSON: nothing that Python would look at can hide
/// behind a version of the schema.
class ProgramScan {
 public:
  ProgramScan(std::string_view text, std::string record, ScanCollector& out)
      : text_(text),
        json_(
            text,
            {.detail = "E_PROGRAM",
             .duplicate_detail = "E_PROGRAM",
             .takes_python_numbers = true}),
        record_(std::move(record)),
        out_(out) {}

  bool run(bool is_sure) {
    Status status = value("");
    status = status ? json_.end() : std::move(status);
    const bool is_graph = is_sure || has_graph_;
    if (!is_graph && (status || !starts_like_json(text_))) {
      return false;
    }
    const bool is_read = status.has_value();
    if (!is_read) {
      Error error = std::move(status).error();
      error.record = record_;
      out_.add_unreadable(std::move(error));
    }
    for (const auto& [name, row] : rows_) {
      out_.add_finding(
          {.name = name,
           .is_dangerous = row.is_dangerous,
           .record = record_,
           .offset = row.offset,
           .count = row.count});
    }
    out_.add_operators(operators_.size());
    return is_read;
  }

 private:
  struct Row {
    bool is_dangerous = false;
    std::uint64_t offset = 0;
    std::uint64_t count = 0;
  };

  Status value(std::string_view key) {
    if (++level_ > kMaxLevels) {
      return read_error(
          ErrorCode::kUnsafe,
          "E_DEPTH",
          format("values are nested more than {} levels deep", kMaxLevels));
    }
    Status status = inner_value(key);
    --level_;
    return status;
  }

  Status inner_value(std::string_view key) {
    if (json_.starts_with('{')) {
      return json_.members(
          [this](std::string_view name) {
            has_graph_ = has_graph_ || name == "graph_module";
            return value(name);
          },
          Repeats::kGiven);
    }
    if (json_.starts_with('[')) {
      return json_.elements([this, key] { return value(key); });
    }
    if (!json_.starts_with('"')) {
      return json_.skip_value();
    }
    const std::uint64_t offset = json_.offset();
    LOCKSTEP_ASSIGN(const std::string text, json_.string());
    return judge(key, text, offset);
  }

  Status
  judge(std::string_view key, const std::string& text, std::uint64_t offset) {
    if (key == "target" || key == "as_operator") {
      operators_.insert(text.substr(0, kMaxTextBytes));
      const TargetKind kind = judge_target(text);
      if (kind != TargetKind::kKnown) {
        LOCKSTEP_TRY(note(text, kind == TargetKind::kDangerous, offset));
      }
    } else if (key == "expr_str" && !is_plain_expression(text)) {
      LOCKSTEP_TRY(note("sympy.sympify: " + text, true, offset));
    } else if (key == "guards_code" && !is_plain_guard(text)) {
      LOCKSTEP_TRY(note("exec: " + text, true, offset));
    }
    for (const auto& [name, is_dangerous] : imports_in(text, pairs_)) {
      LOCKSTEP_TRY(note("import: " + name, is_dangerous, offset));
    }
    return {};
  }

  Status note(std::string name, bool is_dangerous, std::uint64_t offset) {
    name.resize(std::min(name.size(), kMaxTextBytes));
    const auto [entry, is_new] =
        rows_.try_emplace(std::move(name), Row{.offset = offset});
    entry->second.is_dangerous = entry->second.is_dangerous || is_dangerous;
    ++entry->second.count;
    return is_new ? out_.count_finding(entry->first, record_) : Status();
  }

  std::string_view text_;
  JsonScanner json_;
  std::string record_;
  ScanCollector& out_;
  std::uint64_t level_ = 0;
  bool has_graph_ = false;
  std::size_t pairs_ = kMaxPairs;
  std::set<std::string> operators_;
  std::map<std::string, Row> rows_;
};

} // namespace

bool is_program_record(std::string_view name) {
  const std::string lower = lower_case(name);
  return lower.starts_with(kModels) || is_old_program_record(lower);
}

bool is_old_program_record(std::string_view name) {
  return base_name(lower_case(name)) == kOldGraphRecord;
}

bool is_compiled_record(std::string_view name) {
  return lower_case(name).starts_with(kCompiledFolder);
}

bool is_object_record(std::string_view name) {
  const std::string lower = lower_case(name);
  const bool is_packed = lower.ends_with(kPacked);
  for (const std::string_view folder : kPayloadFolders) {
    if (lower.starts_with(folder)) {
      const std::string_view path =
          std::string_view(lower).substr(folder.size());
      return is_packed ||
             std::ranges::any_of(kObjects, [&](std::string_view front) {
               return path.starts_with(front);
             });
    }
  }
  return is_packed && base_name(lower).starts_with(kOldParts);
}

bool starts_like_json(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && (text[at] == '{' || text[at] == '[');
}

bool scan_program(
    std::string_view json,
    const std::string& record,
    bool is_sure,
    ScanCollector& out) {
  return ProgramScan(json, record, out).run(is_sure);
}

namespace {

Result<std::vector<PayloadRow>> table_rows(
    const ZipReader& zip,
    const ZipRecord& record,
    const Limits& limits) {
  if (record.size > limits.max_pickle_bytes) {
    return read_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format("the table has {} bytes, more than the limit", record.size),
        "Limits::max_pickle_bytes allows more");
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(const ByteSpan bytes, zip.read(record, scratch));
  return read_payloads(as_text(bytes), record.name, limits);
}

void add_row(
    std::string_view folder,
    const PayloadRow& row,
    PayloadRecords& found) {
  // As os.path.join has it.
  const std::string path =
      row.path.starts_with('/') ? row.path : std::string(folder) + row.path;
  (row.is_pickle || is_object_record(path) ? found.pickles : found.tensors)
      .insert(lower_case(path));
}

} // namespace

PayloadRecords payload_records(const ZipReader& zip, const Limits& limits) {
  PayloadRecords found;
  for (const ZipRecord& record : zip.records()) {
    const std::string name = lower_case(record.name);
    const auto* const folder = std::ranges::find_if(
        kPayloadFolders,
        [&](std::string_view front) { return name.starts_with(front); });
    if (folder == kPayloadFolders.end() || !name.ends_with("_config.json")) {
      continue;
    }
    const auto rows = table_rows(zip, record, limits);
    if (!rows) {
      Error error = rows.error();
      error.record = record.name;
      found.unreadable.push_back(std::move(error));
      continue;
    }
    for (const PayloadRow& row : *rows) {
      add_row(*folder, row, found);
    }
  }
  for (const std::string& name : found.pickles) {
    found.tensors.erase(name);
  }
  return found;
}

} // namespace lockstep::ckpt::internal
