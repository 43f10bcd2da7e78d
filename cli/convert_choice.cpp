// SPDX-License-Identifier: BSD-3-Clause
#include "cli/convert_choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/target.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::cli {
namespace {

bool is_versions(std::string_view name) {
  return name.substr(name.rfind('.') + 1) == ckpt::kStateMetadata;
}

bool is_at_or_below(std::string_view name, std::string_view place) {
  return name.starts_with(place) &&
         (name.size() == place.size() || name[place.size()] == '.');
}

// Those of `root` that the weights alone are taken out of, too, if the weights
// have the front of a name.
Result<std::vector<std::string>> attributes_without_place(
    const ckpt::Value& root,
    const ckpt::Value& weights,
    const std::string& front,
    const ckpt::FormatWriter& writer) {
  std::vector<std::string> names;
  if (!front.empty()) {
    for (const auto& [name, value] : root.as_dict()->attributes) {
      names.push_back(ckpt::key_text(name));
    }
  }
  if (writer.lost_attributes != nullptr) {
    LOCKSTEP_ASSIGN(const auto inner, writer.lost_attributes(weights));
    std::ranges::transform(
        inner,
        std::back_inserter(names),
        [&](const std::string& name) { return front + name; });
  }
  return names;
}

std::string lost_program_text(const ckpt::Checkpoint& file, bool keeps_values) {
  const std::string constants = file.constants == 0
                                    ? ""
                                    : format(
                                          ", nor the {} in its code",
                                          counted(file.constants, "tensor"));
  return format(
      "the TorchScript program {} is not written{}; only its {} are",
      escape(ckpt::script_class(file.root)),
      constants,
      keeps_values ? "tensors and values" : "tensors");
}

// No format has a place for the code of a program, few for its values.
Status choose_of_program(
    Chosen& chosen,
    const ckpt::Checkpoint& file,
    const ckpt::FormatWriter& writer,
    bool all) {
  const bool keeps_values =
      writer.keeps_script_values || (all && writer.is_tensors_only);
  if (!keeps_values) {
    LOCKSTEP_ASSIGN(chosen.root, ckpt::script_weights(chosen.root));
  }
  chosen.warnings.push_back(lost_program_text(file, keeps_values));
  return {};
}

// What a format does that does not keep the tree as it is.
Status note_changes(
    Chosen& chosen,
    const std::string& front,
    const ckpt::FormatWriter& writer) {
  if (writer.changed_values == nullptr) {
    return {};
  }
  LOCKSTEP_ASSIGN(chosen.unnamed, ckpt::unnamed_tensors(chosen.root));
  // What lies in an attribute that is left out is left out with it.
  std::erase_if(chosen.unnamed, [&](const std::string& name) {
    return std::ranges::any_of(
        chosen.attributes,
        [&](const std::string& attribute) {
          return attribute.starts_with(front) &&
                 is_at_or_below(
                     name,
                     "<attributes>." + attribute.substr(front.size()));
        });
  });
  for (std::string& name : chosen.unnamed) {
    name.insert(0, front);
  }
  LOCKSTEP_ASSIGN(auto changes, writer.changed_values(chosen.root));
  for (ckpt::ValueChange& change : changes) {
    change.first = front + change.first;
    chosen.warnings.push_back(ckpt::to_text(change));
  }
  return {};
}

// What lies beside an entry: of "state.model" also what lies in "state".
std::vector<std::string> names_beside(
    const ckpt::Value& root,
    std::string_view entry) {
  std::vector<std::string> names;
  for (const auto& [key, value] : root.as_dict()->items) {
    const std::string name = ckpt::key_text(key);
    const std::string front = name + ".";
    if (entry.starts_with(front) && root.find(entry) == nullptr) {
      for (const std::string& inner :
           names_beside(value, entry.substr(front.size()))) {
        names.push_back(front + inner);
      }
    } else if (name != entry) {
      names.push_back(name);
    }
  }
  return names;
}

// What of the chosen values `writer` has no place for. `front`: their name in
// `root`, with a dot.
Status note_losses(
    Chosen& chosen,
    const ckpt::Value& root,
    const std::string& front,
    const ckpt::FormatWriter& writer) {
  LOCKSTEP_ASSIGN(
      chosen.attributes,
      attributes_without_place(root, chosen.root, front, writer));
  LOCKSTEP_TRY(note_changes(chosen, front, writer));
  const auto others =
      std::ranges::stable_partition(chosen.attributes, is_versions);
  chosen.versions.assign(chosen.attributes.begin(), others.begin());
  chosen.attributes.erase(chosen.attributes.begin(), others.begin());
  return {};
}

} // namespace

Result<Chosen>
choose_values(const ckpt::Checkpoint& file, std::string_view to, bool all) {
  const ckpt::Value& root = file.root;
  const ckpt::FormatWriter& writer = ckpt::format_to_write(to)->writer;
  const ckpt::WeightsPlace place = ckpt::locate_weights(root);
  Chosen chosen{.root = root};
  for (const ckpt::Warning& warning : file.warnings) {
    if (warning.name == "W_SHARD") { // a part must not look like the whole
      chosen.warnings.push_back(ckpt::to_string(warning));
    }
  }
  std::string front;
  // A configuration under a usual name is not taken for the weights.
  const bool is_weights =
      !place.key.empty() &&
      (ckpt::holds_tensor(place.value) || !ckpt::holds_tensor(root));
  if (!all && writer.is_tensors_only && is_weights) {
    front = place.key + ".";
    chosen.root = place.value;
    chosen.left_out = names_beside(root, place.key);
  }
  if (!ckpt::script_class(root).empty()) {
    LOCKSTEP_TRY(choose_of_program(chosen, file, writer, all));
  }
  chosen.records = records_without_place(file.extra_records, writer);
  LOCKSTEP_TRY(note_losses(chosen, root, front, writer));
  return chosen;
}

Result<Chosen> choose_all(const ckpt::Value& root, std::string_view to) {
  Chosen chosen{.root = root};
  LOCKSTEP_TRY(
      note_losses(chosen, root, "", ckpt::format_to_write(to)->writer));
  return chosen;
}

std::vector<std::string> left_out_names(const Chosen& chosen) {
  std::vector<std::string> all = chosen.left_out;
  for (const auto* names :
       {&chosen.versions,
        &chosen.attributes,
        &chosen.unnamed,
        &chosen.records}) {
    all.insert(all.end(), names->begin(), names->end());
  }
  return all;
}

std::string left_out_text(const Chosen& chosen, std::string_view format_name) {
  std::string text;
  if (!chosen.left_out.empty()) {
    text += format(
        "left out: {}; --all takes everything\n",
        names_text(chosen.left_out));
  }
  if (!chosen.versions.empty()) {
    text += format(
        "left out: {}, the versions of the modules; {} has no place for it\n",
        names_text(chosen.versions),
        format_name);
  }
  if (!chosen.attributes.empty()) {
    text += format(
        "left out: {}; {} has no place for it\n",
        names_text(chosen.attributes),
        format_name);
  }
  if (!chosen.unnamed.empty()) {
    text += format(
        "left out: {}; {} has no place for {}\n",
        names_text(chosen.unnamed),
        format_name,
        chosen.unnamed.size() == 1 ? "it" : "them");
  }
  return text + left_out_text(chosen.records, format_name);
}

} // namespace lockstep::cli
