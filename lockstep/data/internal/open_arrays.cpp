// SPDX-License-Identifier: BSD-3-Clause
//
// Arrays of npz, safetensors and PyTorch files, mapped where the format allows.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/data/internal/array_parts.h"
#include "lockstep/data/internal/formats.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::internal {
namespace {

constexpr std::array<std::string_view, 4> kArrayEndings{
    ".npz",
    ".safetensors",
    ".pt",
    ".pth"};
// What inputs and targets are called, in small or capital letters.
constexpr std::array<std::string_view, 5> kInputs{
    "x",
    "images",
    "data",
    "inputs",
    "features"};
constexpr std::array<std::string_view, 5> kTargets{
    "y",
    "labels",
    "targets",
    "target",
    "masks"};
constexpr std::string_view kArraysHint =
    "expected arrays x and y (or images, data, inputs, features; labels, "
    "targets, target, masks), for two parts with _train and _val or _test";

using Tensors = std::map<std::string, at::Tensor>;

Error with_path(Error error, const std::string& path) {
  error.path = path;
  if (error.detail == "E_LIMIT") {
    error.hint =
        "write it with numpy.savez, which does not compress: it is mapped then";
  }
  return error;
}

bool is_name_of(
    const std::string& name,
    std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// The tensors of a file by their names in small letters; of a pair "x" and "y".
Tensors tensors_of(FileSystem& fs, const std::string& path) {
  Result<ckpt::Checkpoint> file = ckpt::load(path, {}, fs);
  if (!file) {
    raise(with_path(std::move(file).error(), path));
  }
  Tensors tensors;
  TensorReader reader;
  const auto add = [&](const std::string& key, const ckpt::Value& value) {
    const std::string name = lower_case(key);
    if (const ckpt::Tensor* tensor = value.as_tensor()) {
      try {
        tensors.insert_or_assign(name, reader.tensor(*tensor));
      } catch (const Exception& exception) {
        raise(with_path(exception.error(), path));
      }
    } else if (is_name_of(name, kInputs) || is_name_of(name, kTargets)) {
      raise(
          {.code = ErrorCode::kUnsupported,
           .op = "data.open",
           .message = format("'{}' is no array of numbers", escape(key)),
           .path = path,
           .detail = "E_DATA_TYPE"});
    }
  };
  const ckpt::Value& root = file->root;
  if (const ckpt::Dict* dict = root.as_dict()) {
    for (const auto& [name, value] : dict->items) {
      add(std::string(name.text()), value);
    }
  } else if (const auto pair = root.elements();
             pair != nullptr && pair->size() == 2) {
    add("x", (*pair)[0]);
    add("y", (*pair)[1]);
  }
  return tensors;
}

// "x", "x_train" or "train_x"; `part` may be empty.
const at::Tensor* find(
    const Tensors& tensors,
    std::span<const std::string_view> roles,
    std::string_view part) {
  for (const std::string_view role : roles) {
    for (const std::string& name :
         {part.empty() ? std::string(role) : format("{}_{}", role, part),
          part.empty() ? std::string(role) : format("{}_{}", part, role)}) {
      const auto found = tensors.find(name);
      if (found != tensors.end()) {
        return &found->second;
      }
    }
  }
  return nullptr;
}

bool is_whole(at::ScalarType type) {
  return c10::isIntegralType(type, /*includeBool=*/true);
}

void check_type(const at::Tensor& tensor, const std::string& file) {
  const at::ScalarType type = tensor.scalar_type();
  const bool is_real = is_whole(type) || type == at::kFloat ||
                       type == at::kDouble || type == at::kHalf ||
                       type == at::kBFloat16;
  if (!is_real || !tensor.is_cpu() || tensor.dim() == 0) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "data.open",
         .message = format(
             "an array of samples has rows of real numbers, on the CPU; got "
             "{} dimensions of {}",
             tensor.dim(),
             c10::toString(type)),
         .path = file,
         .detail = "E_DATA_TYPE"});
  }
}

// Numbers of classes for each sample, masks, or values.
void set_targets(
    at::Tensor targets,
    const DatasetOptions& options,
    ArrayPart& part) {
  if (targets.dim() == 2 && targets.size(1) == 1) {
    targets = targets.squeeze(1);
  }
  if (targets.dim() == 4 && targets.size(1) == 1) {
    targets = targets.squeeze(1);
  }
  const bool is_wanted = options.targets != TargetKind::kValues;
  const bool can_be = is_whole(targets.scalar_type()) ||
                      options.targets == TargetKind::kClasses;
  const bool is_mask = targets.dim() == 3 && part.inputs.shape.size() >= 2;
  if (is_wanted && can_be && !is_whole(targets.scalar_type()) &&
      !targets.eq(targets.floor()).all().item<bool>()) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "data.open",
         .message = "the targets are to be classes, and some are no whole "
                    "numbers",
         .hint = "--task regression takes them as values",
         .path = part.file,
         .detail = "E_LABEL"});
  }
  if (is_wanted && can_be && targets.dim() == 1) {
    const ArrayElements elements = elements_of(targets);
    part.classes.resize(static_cast<std::size_t>(targets.size(0)));
    for (std::int64_t i = 0; i < targets.size(0); ++i) {
      const auto at = static_cast<std::size_t>(i);
      read_integers(elements, i, std::span(part.classes).subspan(at, 1));
    }
    return;
  }
  part.targets = elements_of(targets);
  part.target.shape = part.targets.shape;
  part.target.kind = is_wanted && can_be && is_mask ? TargetKind::kClasses
                                                    : TargetKind::kValues;
  if (part.target.shape.empty()) {
    part.target.shape = {1};
  }
}

std::optional<ArrayPart> part_of(
    const Tensors& tensors,
    std::string_view name,
    const std::string& file,
    const DatasetOptions& options) {
  const at::Tensor* inputs = find(tensors, kInputs, name);
  const at::Tensor* targets = find(tensors, kTargets, name);
  if (inputs == nullptr || targets == nullptr) {
    return std::nullopt;
  }
  check_type(*inputs, file);
  check_type(*targets, file);
  ArrayPart part{.inputs = elements_of(*inputs), .file = file};
  set_targets(*targets, options, part);
  return part;
}

[[noreturn]] void no_arrays(const Tensors& tensors, const std::string& file) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
  }
  no_such_data(
      names.empty() ? std::string("the file has no arrays with names")
                    : format(
                          "the file has no inputs and targets, but {}",
                          some_names(names)),
      file,
      std::string(kArraysHint));
}

// A file with both parts, or with one that has no name.
std::vector<ArrayPart> parts_in(
    FileSystem& fs,
    const std::string& file,
    const DatasetOptions& options) {
  const Tensors tensors = tensors_of(fs, file);
  std::vector<ArrayPart> parts;
  for (const std::string_view name : kTrainNames) {
    if (auto part = part_of(tensors, name, file, options)) {
      parts.push_back(*std::move(part));
      break;
    }
  }
  for (const std::string_view name : kValNames) {
    auto part = part_of(tensors, name, file, options);
    if (part && parts.size() == 1) {
      parts.push_back(*std::move(part));
    }
  }
  if (parts.empty()) {
    auto part = part_of(tensors, "", file, options);
    if (!part) {
      no_arrays(tensors, file);
    }
    parts.push_back(*std::move(part));
  }
  return parts;
}

ArrayPart only_part(
    FileSystem& fs,
    const std::string& file,
    const DatasetOptions& options) {
  return std::move(parts_in(fs, file, options).front());
}

} // namespace

bool holds_arrays(const std::string& path, FileSystem& fs) {
  return !part_files(fs, path, kArrayEndings).train.empty();
}

DatasetParts open_arrays(
    const std::string& path,
    const DatasetOptions& options) {
  FileSystem& fs = real_fs();
  const PartFiles files = part_files(fs, path, kArrayEndings);
  if (files.train.empty()) {
    no_such_data(
        "there is no file of arrays, or there are several",
        path,
        "expected FILE.npz, .safetensors, .pt or .pth, or a folder with one, "
        "or with train and val of them");
  }
  if (files.val.empty()) {
    return array_parts(parts_in(fs, files.train, options), options);
  }
  std::vector<ArrayPart> parts;
  parts.push_back(only_part(fs, files.train, options));
  parts.push_back(only_part(fs, files.val, options));
  return array_parts(std::move(parts), options);
}

} // namespace lockstep::internal
