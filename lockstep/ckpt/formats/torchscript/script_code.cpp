// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/script_code.h"

#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/torchscript/script_types.h"

namespace lockstep::ckpt::internal {
namespace {

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

} // namespace

std::string script_code_record(std::size_t index) {
  std::string path = script_module(index);
  std::ranges::replace(path, '.', '/');
  return "code/" + path + ".py";
}

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
                                 ? script_module(*attribute.object) + "." +
                                       classes[*attribute.object].name
                                 : attribute.type;
    if (is_script_identifier(attribute.name)) {
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

} // namespace lockstep::ckpt::internal
