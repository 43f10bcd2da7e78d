// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/libtorch_writer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/unread_array.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/torchscript/script_pickler.h"
#include "lockstep/ckpt/formats/torchscript/script_types.h"
#include "lockstep/ckpt/pickle/pickle.h"

namespace lockstep::ckpt {
namespace {

using internal::ScriptAttribute;
using internal::ScriptClass;
using Role = ScriptAttribute::Role;

std::string names_with(const ScriptClass& object, Role role) {
  std::string text = "[";
  for (const ScriptAttribute& attribute : object.attributes) {
    if (attribute.role == role) {
      text += "\"" + attribute.name + "\", ";
    }
  }
  return text + "]";
}

// Record of the class: "code/__torch__/___torch_mangle_0.py".
std::string script_code_record(std::size_t index) {
  std::string path = internal::script_module(index);
  std::ranges::replace(path, '.', '/');
  return "code/" + path + ".py";
}

// Text of that record: a class that lists its attributes, and nothing to run.
std::string script_code(
    const std::vector<ScriptClass>& classes,
    std::size_t index) {
  const ScriptClass& object = classes[index];
  std::string text = format("class {}(Module):\n", object.name);
  text += "  __parameters__ = " + names_with(object, Role::kParameter) + "\n";
  text += "  __buffers__ = " + names_with(object, Role::kBuffer) + "\n";
  bool has_annotations = false;
  for (const ScriptAttribute& attribute : object.attributes) {
    const std::string type = attribute.object
                                 ? internal::script_module(*attribute.object) +
                                       "." + classes[*attribute.object].name
                                 : attribute.type;
    if (internal::is_script_identifier(attribute.name)) {
      text += format("  {} : {}\n", attribute.name, type);
      continue;
    }
    if (!has_annotations) {
      text += "  __annotations__ = []\n";
      has_annotations = true;
    }
    text += format("  __annotations__[\"{}\"] = {}\n", attribute.name, type);
  }
  return text;
}

// In LibTorch's order.
Result<std::vector<internal::ArchiveRecord>> script_records(const Value& root) {
  LOCKSTEP_ASSIGN(const auto classes, internal::script_classes(root));
  LOCKSTEP_ASSIGN(PickledTree tree, internal::ScriptPickler(classes).run());
  std::vector<internal::ArchiveRecord> records;
  for (const auto& storage : tree.storages) {
    const std::string number = std::to_string(records.size());
    records.push_back({.name = "data/" + number, .storage = storage});
  }
  records.push_back({.name = "data.pkl", .text = std::move(tree.pickle)});
  for (std::size_t i = 0; i < classes.size(); ++i) {
    records.push_back(
        {.name = script_code_record(i), .text = script_code(classes, i)});
  }
  // An empty tuple: the code holds no tensors.
  LOCKSTEP_ASSIGN(PickledTree constants, write_pickle(Tuple{}));
  records.push_back(
      {.name = "constants.pkl", .text = std::move(constants.pickle)});
  records.push_back({.name = "version", .text = "3\n"});
  records.push_back({.name = "byteorder", .text = "little"});
  return records;
}

} // namespace

Status write_libtorch(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs) {
  return internal::save_archive(path, script_records(root), options, fs);
}

Result<std::vector<ValueChange>> libtorch_changes(const Value& root) {
  LOCKSTEP_TRY(internal::check_arrays_read(root));
  return internal::script_changes(root);
}

} // namespace lockstep::ckpt
