// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <memory>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/exported/graph_json.h"

namespace lockstep::ckpt::internal {
namespace {

using Kind = ExportedKind;

/// How the value of one member of the union is read.
struct Member {
  std::string_view name = {};
  Kind kind = Kind::kNone;
  Status (*read)(ProgramJson& json, ExportedArgument& out) = nullptr;
};

Status read_integer(ProgramJson& json, ExportedArgument& out) {
  return json.integer(out.integer);
}

Status read_real(ProgramJson& json, ExportedArgument& out) {
  return json.real(out.number);
}

Status read_bool(ProgramJson& json, ExportedArgument& out) {
  bool value = false;
  LOCKSTEP_TRY(json.boolean(value));
  out.integer = value ? 1 : 0;
  return {};
}

Status read_text(ProgramJson& json, ExportedArgument& out) {
  return json.text(out.text);
}

Status read_named(ProgramJson& json, ExportedArgument& out) {
  return read_name(json, out.text);
}

Status read_device_argument(ProgramJson& json, ExportedArgument& out) {
  return read_device(json, out.text);
}

Status read_complex(ProgramJson& json, ExportedArgument& out) {
  return json.fields(
      {{"real", [&] { return json.real(out.number); }},
       {"imag", [&] { return json.real(out.imaginary); }}});
}

Status read_subgraph(ProgramJson& json, ExportedArgument& out) {
  auto graph = std::make_shared<ExportedGraph>();
  LOCKSTEP_TRY(json.count(sizeof(ExportedGraph)));
  LOCKSTEP_TRY(json.fields(
      {{"name", [&] { return json.text(out.text); }},
       {"graph", [&] { return read_graph(json, *graph); }}}));
  out.graph = std::move(graph);
  return {};
}

// A number that is named or given: {"as_name": "s"} or {"as_int": 3}.
Status read_sym(ProgramJson& json, ExportedArgument& out) {
  const Kind named = out.kind;
  bool is_named = false;
  LOCKSTEP_TRY(json.fields(
      {{"as_name",
        [&] {
          is_named = true;
          return json.text(out.text);
        }},
       {"as_int",
        [&] {
          out.kind = Kind::kInt;
          return json.integer(out.integer);
        }},
       {"as_float",
        [&] {
          out.kind = Kind::kFloat;
          return json.real(out.number);
        }},
       {"as_bool", [&] {
          out.kind = Kind::kBool;
          return read_bool(json, out);
        }}}));
  return is_named == (out.kind == named)
             ? Status()
             : Status(json.error("expected a name or a number before here"));
}

// {"as_tensor": {"name": "x"}} or {"as_none": true}.
Status read_optional_tensor(ProgramJson& json, ExportedArgument& out) {
  out.kind = Kind::kNone;
  return json.fields({{"as_tensor", [&] {
                         out.kind = Kind::kTensor;
                         return read_name(json, out.text);
                       }}});
}

Status read_skipped(ProgramJson& json, ExportedArgument& /*out*/) {
  return json.scanner().skip_value();
}

template <Kind element, Status (*read)(ProgramJson&, ExportedArgument&)>
Status read_list(ProgramJson& json, ExportedArgument& out) {
  return json.list(out.items, [&](ExportedArgument& item) {
    item.kind = element;
    return read(json, item);
  });
}

Status read_dict(ProgramJson& json, ExportedArgument& out) {
  return json.scanner().members([&](std::string_view key) -> Status {
    LOCKSTEP_TRY(json.count(sizeof(ExportedArgument) + sizeof(std::string)));
    out.keys.emplace_back(key);
    return read_argument(json, out.items.emplace_back());
  });
}

constexpr std::array kMembers = {
    Member{"as_none", Kind::kNone, read_skipped},
    Member{"as_tensor", Kind::kTensor, read_named},
    Member{"as_tensors", Kind::kList, read_list<Kind::kTensor, read_named>},
    Member{"as_int", Kind::kInt, read_integer},
    Member{"as_ints", Kind::kList, read_list<Kind::kInt, read_integer>},
    Member{"as_float", Kind::kFloat, read_real},
    Member{"as_floats", Kind::kList, read_list<Kind::kFloat, read_real>},
    Member{"as_string", Kind::kString, read_text},
    Member{"as_strings", Kind::kList, read_list<Kind::kString, read_text>},
    Member{"as_sym_int", Kind::kSymInt, read_sym},
    Member{"as_sym_ints", Kind::kList, read_list<Kind::kSymInt, read_sym>},
    Member{"as_scalar_type", Kind::kScalarType, read_integer},
    Member{"as_memory_format", Kind::kMemoryFormat, read_integer},
    Member{"as_layout", Kind::kLayout, read_integer},
    Member{"as_device", Kind::kDevice, read_device_argument},
    Member{"as_bool", Kind::kBool, read_bool},
    Member{"as_bools", Kind::kList, read_list<Kind::kBool, read_bool>},
    Member{"as_sym_bool", Kind::kSymBool, read_sym},
    Member{"as_sym_bools", Kind::kList, read_list<Kind::kSymBool, read_sym>},
    Member{"as_graph", Kind::kGraph, read_subgraph},
    Member{
        "as_optional_tensors",
        Kind::kList,
        read_list<Kind::kTensor, read_optional_tensor>},
    Member{"as_custom_obj", Kind::kCustomObject, read_named},
    Member{"as_operator", Kind::kOperator, read_text},
    Member{"as_sym_float", Kind::kSymFloat, read_sym},
    Member{"as_sym_floats", Kind::kList, read_list<Kind::kSymFloat, read_sym>},
    Member{"as_optional_tensor", Kind::kTensor, read_optional_tensor},
    Member{"as_complex", Kind::kComplex, read_complex},
    Member{
        "as_nested_tensors",
        Kind::kList,
        read_list<Kind::kList, read_list<Kind::kTensor, read_named>>},
    Member{
        "as_int_lists",
        Kind::kList,
        read_list<Kind::kList, read_list<Kind::kInt, read_integer>>},
    Member{"as_string_to_argument", Kind::kDict, read_dict},
    Member{
        "as_float_lists",
        Kind::kList,
        read_list<Kind::kList, read_list<Kind::kFloat, read_real>>},
};

} // namespace

Status read_name(ProgramJson& json, std::string& out) {
  LOCKSTEP_TRY(json.fields({{"name", [&] { return json.text(out); }}}));
  return out.empty() ? Status(json.error("a name is missing before here"))
                     : Status();
}

Status read_device(ProgramJson& json, std::string& out) {
  std::int64_t index = -1;
  LOCKSTEP_TRY(json.fields(
      {{"type", [&] { return json.text(out); }},
       {"index", [&] { return json.integer(index); }}}));
  if (index >= 0) {
    out += format(":{}", index);
  }
  return {};
}

Status read_argument(ProgramJson& json, ExportedArgument& out) {
  const ProgramJson::Level level(json);
  LOCKSTEP_TRY(level.status());
  std::size_t members = 0;
  LOCKSTEP_TRY(json.scanner().members([&](std::string_view key) -> Status {
    const auto* member = std::ranges::find(kMembers, key, &Member::name);
    if (member == kMembers.end()) {
      return json.error(
          format("an argument of the unknown kind '{}'", escape(key)));
    }
    ++members;
    out.kind = member->kind;
    return member->read(json, out);
  }));
  return members == 1 ? Status()
                      : Status(json.error("expected one value in an argument"));
}

} // namespace lockstep::ckpt::internal
