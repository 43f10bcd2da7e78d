// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/scan_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/json_scanner.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/exported/model_parts_json.h"
#include "lockstep/ckpt/formats/exported/operator_rules.h"
#include "lockstep/ckpt/pickle/globals.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::string_view kModels = "models/";
constexpr std::string_view kJson = ".json";
constexpr std::string_view kOldProgram = "serialized_exported_program.json";
constexpr std::string_view kCompiledFolder = "data/aotinductor/";
constexpr std::string_view kCustomObject = "custom_obj";

constexpr std::uint64_t kMaxLevels = 300;
// Of a finding's name.
constexpr std::size_t kMaxTextBytes = 200;

/// A text in the structure of arguments that has a module imported.
struct ImportRow {
  /// What such a text contains.
  std::string_view mark = {};
  /// The key whose value is the module, then what parts it from the name.
  std::string_view module_key = {};
  std::string_view name_key = {};
};
constexpr std::array kImports = {
    ImportRow{
        "default_factory_module",
        "default_factory_module",
        "default_factory_name"},
    ImportRow{"__enum__", "fqn", ""}};

constexpr auto kHarmlessImports = std::to_array<std::string_view>(
    {"builtins.bool",
     "builtins.dict",
     "builtins.float",
     "builtins.int",
     "builtins.list",
     "builtins.set",
     "builtins.str",
     "builtins.tuple",
     "collections.OrderedDict"});

// The name behind a key, whatever quotes and backslashes are in between.
std::string word_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (key.empty() || at == std::string_view::npos) {
    return "";
  }
  text.remove_prefix(at + key.size());
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  const auto* begin = std::ranges::find_if(text, is_word);
  const auto* end = std::find_if_not(begin, text.end(), is_word);
  return {begin, end};
}

/// Goes over all values of the JSON: nothing that Python would look at can hide
/// behind a version of the schema.
class ProgramScan {
 public:
  ProgramScan(std::string_view text, std::string record, ScanCollector& out)
      : json_(text, {.detail = "E_PROGRAM", .duplicate_detail = "E_PROGRAM"}),
        record_(std::move(record)),
        out_(out) {}

  bool run(bool is_sure) {
    Status status = value("");
    status = status ? json_.end() : std::move(status);
    if (!is_sure && !has_graph_) {
      return false;
    }
    if (!status) {
      Error error = std::move(status).error();
      error.record = record_;
      out_.add_unreadable(std::move(error));
    }
    for (const auto& [name, row] : rows_) {
      out_.add_code(
          name,
          row.is_dangerous,
          {.record = record_, .offset = row.offset},
          row.count);
    }
    out_.add_operators(operators_.size());
    return true;
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
          [this](const std::string& name) {
            has_graph_ = has_graph_ || name == "graph_module";
            return value(name);
          },
          Repeats::kGiven);
    }
    if (json_.starts_with('[')) {
      const std::string own(key);
      return json_.elements([this, &own] { return value(own); });
    }
    if (!json_.starts_with('"')) {
      return json_.skip_value();
    }
    const std::uint64_t offset = json_.offset();
    LOCKSTEP_ASSIGN(const std::string text, json_.string());
    judge(key, text, offset);
    return {};
  }

  void
  judge(std::string_view key, const std::string& text, std::uint64_t offset) {
    if (key == "target" || key == "as_operator") {
      operators_.insert(text.substr(0, kMaxTextBytes));
      const TargetKind kind = judge_target(text);
      if (kind != TargetKind::kKnown) {
        note(text, kind == TargetKind::kDangerous, offset);
      }
    } else if (key == "expr_str" && !is_plain_expression(text)) {
      note("sympy.sympify: " + text, true, offset);
    } else if (key == "guards_code" && !is_plain_guard(text)) {
      note("exec: " + text, true, offset);
    }
    for (const ImportRow& row : kImports) {
      if (text.find(row.mark) != std::string::npos) {
        note_imports(text, row, offset);
      }
    }
  }

  void note_imports(
      std::string_view text,
      const ImportRow& row,
      std::uint64_t offset) {
    for (std::size_t at = 0;
         (at = text.find(row.module_key, at)) != std::string_view::npos;
         at += row.module_key.size()) {
      const std::string_view rest = text.substr(at);
      std::string name = word_after(rest, row.module_key);
      const std::string last = word_after(rest, row.name_key);
      name += last.empty() ? "" : "." + last;
      if (std::ranges::find(kHarmlessImports, name) == kHarmlessImports.end()) {
        note("import: " + name, find_global(name).is_dangerous(), offset);
      }
    }
  }

  void note(std::string name, bool is_dangerous, std::uint64_t offset) {
    name.resize(std::min(name.size(), kMaxTextBytes));
    Row& row = rows_[std::move(name)];
    row.offset = row.count == 0 ? offset : row.offset;
    row.is_dangerous = row.is_dangerous || is_dangerous;
    ++row.count;
  }

  JsonScanner json_;
  std::string record_;
  ScanCollector& out_;
  std::uint64_t level_ = 0;
  bool has_graph_ = false;
  std::set<std::string> operators_;
  std::map<std::string, Row> rows_;
};

} // namespace

bool is_program_record(std::string_view name) {
  return (name.starts_with(kModels) && name.ends_with(kJson)) ||
         name == kOldProgram ||
         name.ends_with("/serialized_exported_program.json");
}

bool is_compiled_record(std::string_view name) {
  return name.starts_with(kCompiledFolder) &&
         (name.ends_with(".so") || name.ends_with(".o") ||
          name.ends_with(".cubin") || name.ends_with(".dll") ||
          name.ends_with(".pyd") || name.ends_with(".dylib"));
}

bool scan_program(
    std::string_view json,
    const std::string& record,
    bool is_sure,
    ScanCollector& out) {
  return ProgramScan(json, record, out).run(is_sure);
}

PayloadRecords payload_records(const ZipReader& zip, const Limits& limits) {
  PayloadRecords found;
  for (const ZipRecord& record : zip.records()) {
    const std::string_view name = record.name;
    const bool is_table = (name.starts_with("data/weights/") ||
                           name.starts_with("data/constants/")) &&
                          name.ends_with("_config.json");
    if (!is_table || record.size > limits.max_pickle_bytes) {
      continue;
    }
    std::vector<std::byte> scratch;
    const auto bytes = zip.read(record, scratch);
    const auto rows = bytes ? read_payloads(as_text(*bytes), name, limits)
                            : Result<std::vector<PayloadRow>>(bytes.error());
    for (std::size_t i = 0; rows && i < rows->size(); ++i) {
      const PayloadRow& row = (*rows)[i];
      const std::string path =
          std::string(name.substr(0, name.rfind('/') + 1)) + row.path;
      const bool is_pickle =
          row.is_pickle || row.path.starts_with(kCustomObject);
      (is_pickle ? found.pickles : found.tensors).insert(path);
    }
  }
  for (const std::string& name : found.pickles) {
    found.tensors.erase(name);
  }
  return found;
}

} // namespace lockstep::ckpt::internal
