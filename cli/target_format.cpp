// SPDX-License-Identifier: BSD-3-Clause
#include "cli/target_format.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "cli/usage_errors.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"

namespace lockstep::cli {
namespace {

// An ending that is none of ours.
struct Ending {
  std::string_view text = {};
  /// What people take such a file for.
  std::string_view kind = {};
};
constexpr std::array kOtherEndings{
    Ending{".onnx", "an ONNX model"},
    Ending{".h5", "an HDF5 file"},
    Ending{".hdf5", "an HDF5 file"},
    Ending{".keras", "a Keras model"},
    Ending{".tflite", "a TensorFlow Lite model"},
    Ending{".pb", "a TensorFlow graph"},
    Ending{".gguf", "a GGUF file of llama.cpp"},
    Ending{".ggml", "a GGML file of llama.cpp"},
    Ending{".mlmodel", "a Core ML model"},
    Ending{".mlpackage", "a Core ML model"},
    Ending{".engine", "a TensorRT engine"},
    Ending{".plan", "a TensorRT engine"},
    Ending{".pte", "an ExecuTorch program"},
    Ending{".msgpack", "a Flax checkpoint"},
    Ending{".pkl", "a Python pickle"},
    Ending{".pickle", "a Python pickle"},
    Ending{".joblib", "a joblib file"},
    Ending{".json", "a JSON file"},
    Ending{".csv", "a table in CSV"},
};

// What a name promises.
struct Promise {
  std::string_view ending = {};
  std::string_view kind = {};
  /// Our writers of such files, the usual one first; none of another's.
  std::vector<std::string_view> writers = {};
};

// Without an ending if the name says nothing.
Promise promise_of(const std::string& name) {
  const std::string path = lower_case(name);
  Promise promise;
  for (const ckpt::Format& format : ckpt::formats()) {
    const std::string_view ending = ckpt::ending_of(format, path);
    if (ending.empty() || format.kind.empty()) {
      continue;
    }
    promise.ending = ending;
    promise.kind = format.kind;
    if (format.writer.write != nullptr) {
      promise.writers.push_back(format.writer.name);
    }
  }
  for (const Ending& row : kOtherEndings) {
    if (path.ends_with(row.text)) {
      promise = {.ending = row.text, .kind = row.kind};
    }
  }
  return promise;
}

// "m.safetensor": the ending of one of ours that the name's is nearly; empty if
// it is near to none.
std::string near_ending(const std::string& path) {
  std::vector<std::string> endings;
  for (const ckpt::Format& format : ckpt::formats()) {
    for (const std::string& ending : split(format.endings, ' ')) {
      endings.push_back(ending);
    }
  }
  const std::string name = lower_case(path.substr(path.rfind('/') + 1));
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0
             ? ""
             : nearest(name.substr(dot), endings);
}

// The usual ending of what the writer makes; empty if there is none.
std::string_view usual_ending(std::string_view writer) {
  for (const ckpt::Format& format : ckpt::formats()) {
    if (format.writer.name == writer && !format.kind.empty()) {
      return format.endings.substr(0, format.endings.find(' '));
    }
  }
  return "";
}

// A name whose ending is nearly one that means another format.
Status check_near_ending(const std::string& path, const std::string& format) {
  const std::string near = near_ending(path);
  const Promise meant = promise_of(near);
  if (near.empty() ||
      std::ranges::find(meant.writers, format) != meant.writers.end()) {
    return {};
  }
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = lockstep::format(
          "the extension of the name is unknown; this would be {}",
          format),
      .hint = lockstep::format(
          "did you mean {}? 'lockstep ckpt convert --to FORMAT' writes {}, "
          "under any name",
          near,
          format_names()),
      .path = path,
      .detail = "E_ENDING"};
}

} // namespace

std::string format_by_name(const std::string& path) {
  const Promise promise = promise_of(path);
  return promise.writers.empty() ? ckpt::SaveOptions().format
                                 : std::string(promise.writers.front());
}

Status check_ending(const std::string& path, const std::string& format) {
  const Promise promise = promise_of(path);
  if (promise.ending.empty()) {
    return check_near_ending(path, format);
  }
  if (std::ranges::find(promise.writers, format) != promise.writers.end()) {
    return {};
  }
  const std::string_view usual = usual_ending(format);
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = lockstep::format(
          "the extension {} means {}, but this would be {}",
          promise.ending,
          promise.kind,
          format),
      .hint =
          usual.empty()
              ? "name it without an extension"
              : lockstep::format(
                    "name it *{}; 'lockstep ckpt convert --to FORMAT' writes "
                    "{}, under any name",
                    usual,
                    format_names()),
      .path = path,
      .detail = "E_ENDING"};
}

Status check_format(const std::string& name) {
  const ckpt::Format* const row = ckpt::format_to_write(name);
  if (row != nullptr && row->writer.needs_file) {
    return row->writer.write("", {}, {}, real_fs()); // says why not
  }
  if (row != nullptr) {
    return {};
  }
  return usage_error(format(
      "unknown format '{}'; expected one of {}",
      escape(name),
      format_names()));
}

std::string format_names() {
  std::vector<std::string> names;
  for (const ckpt::FormatWriter& writer : ckpt::format_writers()) {
    names.emplace_back(writer.name);
  }
  return join(names, ", ");
}

} // namespace lockstep::cli
