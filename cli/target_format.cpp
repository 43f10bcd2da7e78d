// SPDX-License-Identifier: BSD-3-Clause
#include "cli/target_format.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load/format_table.h"

namespace lockstep::cli {
namespace {

// Formats whose files have PyTorch's endings.
constexpr std::string_view kPyTorch = "pt pt-legacy libtorch";

// One ending.
struct Ending {
  std::string_view text = {};
  /// What people take such a file for.
  std::string_view means = {};
  /// Our formats that have it, the usual one first; none of another's.
  std::string_view formats = {};
};
constexpr std::array kEndings{
    Ending{".pt", "a PyTorch file", kPyTorch},
    Ending{".pth", "a PyTorch file", kPyTorch},
    Ending{".pth.tar", "a PyTorch file", kPyTorch},
    Ending{".bin", "a PyTorch file", kPyTorch},
    Ending{".ckpt", "a PyTorch file", kPyTorch},
    Ending{".safetensors", "a safetensors file", "safetensors"},
    Ending{".npz", "a NumPy archive", "npz"},
    Ending{".npy", "one NumPy array"},
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
    Ending{".pt2", "an exported PyTorch program"},
    Ending{".pte", "an ExecuTorch program"},
    Ending{".msgpack", "a Flax checkpoint"},
    Ending{".pkl", "a Python pickle"},
    Ending{".pickle", "a Python pickle"},
    Ending{".joblib", "a joblib file"},
    Ending{".json", "a JSON file"},
    Ending{".csv", "a table in CSV"},
};

const Ending* ending_of(const std::string& path) {
  const auto* found = std::ranges::find_if(kEndings, [&](const Ending& row) {
    return path.ends_with(row.text);
  });
  return found == kEndings.end() ? nullptr : found;
}

std::vector<std::string> formats_of(const Ending& ending) {
  return ending.formats.empty() ? std::vector<std::string>()
                                : split(ending.formats, ' ');
}

bool has_format(const Ending& ending, const std::string& format) {
  const auto formats = formats_of(ending);
  return std::ranges::find(formats, format) != formats.end();
}

} // namespace

std::string format_by_name(const std::string& path) {
  const Ending* ending = ending_of(path);
  const auto formats =
      ending == nullptr ? std::vector<std::string>() : formats_of(*ending);
  return formats.empty() ? "pt" : formats.front();
}

Status check_ending(const std::string& path, const std::string& format) {
  const Ending* ending = ending_of(path);
  if (ending == nullptr || has_format(*ending, format)) {
    return {};
  }
  const auto* usual = std::ranges::find_if(kEndings, [&](const Ending& row) {
    return has_format(row, format);
  });
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = lockstep::format(
          "the extension {} means {}, but this would be {}",
          ending->text,
          ending->means,
          format),
      .hint =
          usual == kEndings.end()
              ? "name it without an extension"
              : lockstep::format(
                    "name it *{}; 'lockstep ckpt convert --to FORMAT' writes "
                    "{}, under any name",
                    usual->text,
                    format_names()),
      .path = path,
      .detail = "E_ENDING"};
}

Status check_format(const std::string& name) {
  const auto writers = ckpt::format_writers();
  if (std::ranges::find(writers, name, &ckpt::FormatWriter::name) !=
      writers.end()) {
    return {};
  }
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = format(
          "unknown format '{}'; expected one of {}",
          escape(name),
          format_names())};
}

std::string format_names() {
  std::vector<std::string> names;
  for (const ckpt::FormatWriter& writer : ckpt::format_writers()) {
    names.emplace_back(writer.name);
  }
  return join(names, ", ");
}

} // namespace lockstep::cli
