// SPDX-License-Identifier: BSD-3-Clause
//
// The one screen of `lockstep ckpt FILE`.
#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/print.h"

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kShownKeys = 12;
constexpr std::size_t kAll = std::string::npos;

std::string_view title_of(std::string_view format) {
  const std::string_view title = format_of(format).title;
  return title.empty() ? format : title;
}

std::string row(std::string_view label, std::string_view text) {
  return format("{:<11} {}\n", label, text);
}

std::string keys_text(const Summary& summary) {
  std::size_t width = 0;
  const std::size_t shown = std::min(summary.keys.size(), kShownKeys);
  for (std::size_t i = 0; i < shown; ++i) {
    width = std::max(width, escape(summary.keys[i].key, 40).size());
  }
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const KeySummary& key = summary.keys[i];
    std::string what = describe(key.value);
    if (key.tensors != 0 && key.type != "Tensor") {
      what = format(
          "{}, {}, {}",
          key.type,
          counted(key.tensors, "tensor"),
          human_bytes(key.bytes));
    }
    std::string line = escape(key.key, 40);
    line.resize(std::max(width, line.size()) + 2, ' ');
    line += what;
    text += row(i == 0 ? "keys" : "", line);
  }
  if (shown < summary.keys.size()) {
    text +=
        row("",
            format("... {} more", with_commas(summary.keys.size() - shown)));
  }
  return text;
}

// "a, b, 3 more": the texts of the first `most` rows.
template <class Row>
std::string listed(
    const std::vector<Row>& rows,
    std::size_t most,
    std::string (*text_of)(const Row& row),
    std::string_view more = "more") {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(rows.size(), most); ++i) {
    parts.push_back(text_of(rows[i]));
  }
  if (rows.size() > most) {
    parts.push_back(format("{} {}", rows.size() - most, more));
  }
  return parts.empty() ? "none" : join(parts, ", ");
}

std::string dtype_text(const DTypeSummary& dtype) {
  return format(
      "{} {} in {}",
      dtype_info(dtype.dtype).name,
      human_bytes(dtype.bytes),
      with_commas(dtype.tensors));
}

std::string device_text(const DeviceSummary& device) {
  return format(
      "{} ({})",
      escape(device.location, 20),
      counted(device.storages, "storage"));
}

std::string weights_text(const Summary& summary) {
  return format(
      "{} in {} of {}{}",
      with_commas(summary.parameters),
      counted(summary.parameter_tensors, "tensor"),
      summary.weights_key.empty() ? "the top level"
                                  : "'" + summary.weights_key + "'",
      summary.buffer_tensors == 0
          ? ""
          : format("; {}", counted(summary.buffer_tensors, "buffer")));
}

std::string prefix_text(const Summary& summary) {
  if (summary.prefix.prefix.empty()) {
    return "none";
  }
  return format(
      "'{}' on {} of {} keys",
      summary.prefix.prefix,
      summary.prefix.keys,
      summary.prefix.of);
}

std::string value_text(const ProgramTensor& value) {
  return format(
      "{} {}{}",
      escape(value.name, 40),
      value.type,
      value.is_tensor ? format(" [{}]", escape(join(value.sizes, ", "), 80))
                      : "");
}

std::string operator_text(const ProgramOperator& row) {
  return format("{} {}", escape(row.name, 60), row.count);
}

std::string size_text(const ProgramSize& row) {
  std::string text = escape(row.symbol, 40);
  text += row.min ? format(" from {}", *row.min) : "";
  text += row.max ? format(" to {}", *row.max) : "";
  return text;
}

std::string graph_text(const ProgramSummary& program) {
  const std::string calls = counted(program.calls, "call");
  return program.operators.empty() ? calls
                                   : format(
                                         "{}: {}",
                                         calls,
                                         listed(
                                             program.operators,
                                             5,
                                             operator_text,
                                             "more operators"));
}

std::string program_text(const ProgramSummary& program, bool is_only) {
  return (is_only ? "" : row("program", escape(program.name, 60))) +
         row("inputs", listed(program.inputs, 6, value_text)) +
         row("outputs", listed(program.outputs, 6, value_text)) +
         row("graph", graph_text(program)) +
         row("dynamic", listed(program.sizes, 8, size_text));
}

std::string names_text(const Summary& summary) {
  const auto& unsafe = summary.unsafe_names;
  const auto& needed = summary.needed_classes;
  std::string text = counted(summary.names, "name");
  if (!summary.programs.empty() && unsafe.empty() && needed.empty()) {
    return text +
           ", without those of sample inputs and of the graph; 'lockstep ckpt "
           "scan' looks into them";
  }
  if (unsafe.empty() && needed.empty()) {
    const bool has_unread = std::ranges::any_of(
        summary.warnings,
        [](const Warning& warning) { return warning.name == "W_ARRAY"; });
    if (has_unread) { // an array of objects is a pickle
      return text +
             ", without those in the arrays that were not read; 'lockstep ckpt "
             "scan' looks into them";
    }
    const std::string_view owner = format_of(summary.format).own_names.owner;
    return text +
           (owner.empty() ? ", all safe" : format(", all known to {}", owner));
  }
  if (!unsafe.empty()) {
    text += format(", {} unsafe: {}", unsafe.size(), some_names(unsafe));
  }
  if (!needed.empty()) {
    text += format(
        "; needs {} {}",
        needed.size() == 1 ? "Python class"
                           : format("{} Python classes", needed.size()),
        some_names(needed));
  }
  return text;
}

std::string shared_text(const Summary& summary) {
  return summary.shared_storages == 0
             ? "none"
             : format(
                   "{} in {}",
                   counted(summary.shared_tensors, "tensor"),
                   counted(summary.shared_storages, "storage"));
}

} // namespace

std::string to_text(const Summary& summary, const std::string& path) {
  std::string text = row("file", escape(path, 200));
  text +=
      row("format",
          format(
              "{}{}{}, {}",
              title_of(summary.format),
              summary.era.empty() ? "" : ", ",
              summary.era,
              human_bytes(summary.file_bytes)));
  if (!summary.archive_name.empty()) {
    text += row("archive", escape(summary.archive_name));
  }
  text += keys_text(summary);
  text +=
      row("tensors",
          format(
              "{}, {}, {} in storages{}",
              counted(summary.tensors, "tensor"),
              counted(summary.elements, "element"),
              human_bytes(summary.storage_bytes),
              summary.tensors_without_bytes == 0
                  ? ""
                  : format(
                        "; {} without bytes",
                        counted(summary.tensors_without_bytes, "tensor"))));
  if (summary.constants != 0) {
    text +=
        row("constants",
            format(
                "{} of the code, {}, without names",
                counted(summary.constants, "tensor"),
                human_bytes(summary.constant_bytes)));
  }
  text += row("dtypes", listed(summary.dtypes, kAll, dtype_text));
  text += row("parameters", weights_text(summary));
  text += row("devices", listed(summary.devices, kAll, device_text));
  text += row("prefix", prefix_text(summary));
  text +=
      row("wrapped",
          !summary.wrapped_class.empty() ? to_text(summary.model)
          : summary.has_several_models ? "no (several whole models in the file)"
                                       : "no (no whole model in the file)");
  text += row("shared", shared_text(summary));
  for (const ProgramSummary& program : summary.programs) {
    text += program_text(program, summary.programs.size() == 1);
  }
  text += row("names", names_text(summary));
  text += row("CRC", summary.crc + ", tensors not checked");
  for (const Warning& warning : summary.warnings) {
    text += row("warning", escape(to_string(warning), 200));
  }
  for (const std::string& hint : summary.hints) {
    text += row("hint", hint);
  }
  return text;
}

} // namespace lockstep::ckpt
