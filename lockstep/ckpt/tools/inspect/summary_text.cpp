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

std::string dtypes_text(const Summary& summary) {
  std::vector<std::string> parts;
  parts.reserve(summary.dtypes.size());
  for (const DTypeSummary& dtype : summary.dtypes) {
    parts.push_back(format(
        "{} {} in {}",
        dtype_info(dtype.dtype).name,
        human_bytes(dtype.bytes),
        with_commas(dtype.tensors)));
  }
  return parts.empty() ? "none" : join(parts, ", ");
}

std::string devices_text(const Summary& summary) {
  std::vector<std::string> parts;
  parts.reserve(summary.devices.size());
  for (const DeviceSummary& device : summary.devices) {
    parts.push_back(format(
        "{} ({})",
        escape(device.location, 20),
        counted(device.storages, "storage")));
  }
  return parts.empty() ? "none" : join(parts, ", ");
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

std::string values_text(const std::vector<ProgramTensor>& values) {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> parts;
  for (const ProgramTensor& value : values) {
    if (parts.size() == kShown) {
      parts.push_back(format("{} more", values.size() - kShown));
      break;
    }
    std::string text = format("{} {}", escape(value.name, 40), value.type);
    if (value.is_tensor) {
      text += format(" [{}]", escape(join(value.sizes, ", "), 80));
    }
    parts.push_back(std::move(text));
  }
  return parts.empty() ? "none" : join(parts, ", ");
}

std::string operators_text(const ProgramSummary& program) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> parts;
  for (const ProgramOperator& row : program.operators) {
    if (parts.size() == kShown) {
      parts.push_back(
          format("{} more operators", program.operators.size() - kShown));
      break;
    }
    parts.push_back(format("{} {}", escape(row.name, 60), row.count));
  }
  return format(
      "{}{}{}",
      counted(program.calls, "call"),
      parts.empty() ? "" : ": ",
      join(parts, ", "));
}

std::string sizes_text(const ProgramSummary& program) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> parts;
  for (const ProgramSize& row : program.sizes) {
    if (parts.size() == kShown) {
      parts.push_back(format("{} more", program.sizes.size() - kShown));
      break;
    }
    std::string text = escape(row.symbol, 40);
    text += row.min ? format(" from {}", *row.min) : "";
    text += row.max ? format(" to {}", *row.max) : "";
    parts.push_back(std::move(text));
  }
  return parts.empty() ? "none" : join(parts, ", ");
}

std::string program_text(const ProgramSummary& program, bool is_only) {
  return (is_only ? "" : row("program", escape(program.name, 60))) +
         row("inputs", values_text(program.inputs)) +
         row("outputs", values_text(program.outputs)) +
         row("graph", operators_text(program)) +
         row("dynamic", sizes_text(program));
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
              "{}, {}, {} in storages",
              counted(summary.tensors, "tensor"),
              counted(summary.elements, "element"),
              human_bytes(summary.storage_bytes)));
  if (summary.constants != 0) {
    text +=
        row("constants",
            format(
                "{} of the code, {}, without names",
                counted(summary.constants, "tensor"),
                human_bytes(summary.constant_bytes)));
  }
  text += row("dtypes", dtypes_text(summary));
  text += row("parameters", weights_text(summary));
  text += row("devices", devices_text(summary));
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
