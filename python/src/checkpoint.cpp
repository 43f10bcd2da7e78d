// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/checkpoint.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "lockstep/ckpt/walk.h"
#include "python/src/array.h"
#include "python/src/errors.h"
#include "python/src/reading.h"
#include "python/src/source.h"
#include "python/src/text.h"

namespace lockstep::python {
namespace nb = nanobind;
namespace {

// In the order of CrcState.
constexpr std::array<std::string_view, 3> kCrcNames{
    "present",
    "absent in data",
    "absent"};

// Names come as bytes: they may hold surrogates.
std::string text_of(const nb::bytes& utf8) {
  return {utf8.c_str(), utf8.size()};
}

OpenCheckpoint finish(
    Result<ckpt::Checkpoint> file,
    const std::string& name,
    const ckpt::LoadOptions& options,
    bool use_ml_dtypes) {
  ckpt::Checkpoint read = take(std::move(file), name);
  const std::uint64_t bytes = read.file_bytes;
  return {
      std::move(read),
      {.path = name,
       .use_ml_dtypes = use_ml_dtypes,
       .limits = options.limits,
       .file_bytes = bytes}};
}

OpenCheckpoint
open_path(const nb::bytes& path, bool use_ml_dtypes, const nb::dict& how) {
  const auto options = load_options(how);
  const std::string name = text_of(path);
  auto file = [&] {
    const nb::gil_scoped_release others_run;
    return ckpt::load(name, options);
  }();
  return finish(std::move(file), name, options, use_ml_dtypes);
}

OpenCheckpoint open_bytes(
    const nb::bytes& data,
    const std::string& name,
    bool use_ml_dtypes,
    const nb::dict& how) {
  const auto options = load_options(how);
  auto source = bytes_source(data);
  auto file = [&] {
    const nb::gil_scoped_release others_run;
    return ckpt::load(source, name, options);
  }();
  return finish(std::move(file), name, options, use_ml_dtypes);
}

} // namespace

nb::object OpenCheckpoint::root() {
  return TreeConverter(options_, storages_).convert(file_.root);
}

const std::vector<OpenCheckpoint::NamedTensor>& OpenCheckpoint::tensors() {
  if (!is_listed_) {
    std::vector<NamedTensor> rows;
    // A name that two tensors have is one name, which `value` refuses.
    const auto add = [&](const std::string& name, const ckpt::Tensor& tensor) {
      if (rows_.try_emplace(name, rows.size()).second) {
        rows.push_back({.name = name, .tensor = tensor});
      }
    };
    take(ckpt::for_each_tensor(file_.root, add), options_.path);
    tensors_ = std::move(rows);
    is_listed_ = true;
  }
  return tensors_;
}

const ckpt::Tensor* OpenCheckpoint::find_tensor(const std::string& name) {
  const auto& rows = tensors();
  const auto found = rows_.find(name);
  return found == rows_.end() ? nullptr : &rows[found->second].tensor;
}

nb::object OpenCheckpoint::names() {
  nb::list names;
  for (const NamedTensor& row : tensors()) {
    names.append(text(row.name));
  }
  return names;
}

bool OpenCheckpoint::has_value(const nb::bytes& utf8) {
  const std::string name = text_of(utf8);
  return find_tensor(name) != nullptr || ckpt::find_path(file_.root, name);
}

nb::object OpenCheckpoint::value(const nb::bytes& utf8) {
  const std::string name = text_of(utf8);
  TreeConverter tree(options_, storages_);
  if (const ckpt::Tensor* tensor = find_tensor(name)) {
    take(ckpt::check_unambiguous(file_.root, name), options_.path);
    return tree.convert(ckpt::Value(*tensor));
  }
  return tree.convert(take(ckpt::find_path(file_.root, name), options_.path));
}

nb::object OpenCheckpoint::info(const nb::bytes& utf8) {
  const std::string name = text_of(utf8);
  const ckpt::Tensor* const found = find_tensor(name);
  if (found == nullptr) {
    take(ckpt::find_path(file_.root, name), options_.path); // the nearest
    raise_python(
        {.code = ErrorCode::kInvalidArgument,
         .op = "python.info",
         .message = "'" + name + "' is no tensor",
         .path = options_.path});
  }
  take(ckpt::check_unambiguous(file_.root, name), options_.path);
  nb::dict info;
  info["name"] = text(name);
  info["dtype"] = text(ckpt::dtype_info(found->dtype).name);
  info["shape"] = int_tuple(found->sizes);
  info["strides"] = int_tuple(found->strides);
  info["nbytes"] = ckpt::contiguous_bytes(*found);
  const bool has_storage = found->storage != nullptr;
  info["device"] = text(has_storage ? found->storage->location : "meta");
  info["storage"] = text(has_storage ? found->storage->key : "");
  info["requires_grad"] = found->requires_grad;
  info["is_parameter"] = found->is_parameter;
  info["class_name"] = text(found->class_name);
  return info;
}

nb::object OpenCheckpoint::facts() const {
  nb::dict facts;
  facts["format"] = text(file_.format);
  facts["era"] = text(file_.era);
  facts["byteorder"] = text(file_.byteorder);
  facts["crc"] = text(kCrcNames[static_cast<std::size_t>(file_.crc)]);
  facts["file_bytes"] = file_.file_bytes;
  nb::list globals;
  for (const ckpt::GlobalUse& use : file_.globals) {
    globals.append(text(use.name));
  }
  facts["globals"] = globals;
  nb::list warnings;
  for (const ckpt::Warning& warning : file_.warnings) {
    warnings.append(nb::make_tuple(text(warning.name), text(warning.text)));
  }
  facts["warnings"] = warnings;
  return facts;
}

void register_checkpoint(nb::module_& module) {
  nb::class_<OpenCheckpoint>(module, "Checkpoint", "An open checkpoint.")
      .def("root", &OpenCheckpoint::root)
      .def("names", &OpenCheckpoint::names)
      .def("value", &OpenCheckpoint::value)
      .def("has_value", &OpenCheckpoint::has_value)
      .def("info", &OpenCheckpoint::info)
      .def("facts", &OpenCheckpoint::facts);
  module.def("open_path", &open_path);
  module.def("open_bytes", &open_bytes);
}

} // namespace lockstep::python
