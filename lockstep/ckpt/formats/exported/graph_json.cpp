// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/exported/graph_json.h"

#include <cstdint>

namespace lockstep::ckpt::internal {
namespace {

constexpr std::int64_t kStridedLayout = 7;

// {"as_int": 3} or {"as_expr": {"expr_str": ..., "hint": {"as_int": 3}}}.
Status read_size(ProgramJson& json, ExportedSize& out) {
  const auto number = [&] { return json.integer(out.value.emplace()); };
  LOCKSTEP_TRY(json.fields(
      {{"as_int", number}, {"as_expr", [&] {
                              return json.fields(
                                  {{"expr_str",
                                    [&] { return json.text(out.expression); }},
                                   {"hint", [&] {
                                      return json.fields({{"as_int", number}});
                                    }}});
                            }}}));
  return out.value || !out.expression.empty()
             ? Status()
             : Status(json.error("a size is missing before here"));
}

Status read_named_argument(ProgramJson& json, ExportedNamedArgument& out) {
  bool has_value = false;
  LOCKSTEP_TRY(json.fields(
      {{"name", [&] { return json.text(out.name); }},
       {"arg", [&] {
          has_value = true;
          return read_argument(json, out.value);
        }}}));
  return has_value ? Status()
                   : Status(json.error("an argument has no value before here"));
}

Status read_metadata(ProgramJson& json, ExportedNode& out) {
  return json.fields(
      {{"stack_trace", [&] { return json.text(out.stack_trace); }},
       {"nn_module_stack", [&] { return json.text(out.module_stack); }}});
}

Status read_arguments(ProgramJson& json, std::vector<ExportedArgument>& out) {
  return json.list(out, [&json](ExportedArgument& argument) {
    return read_argument(json, argument);
  });
}

Status read_node(ProgramJson& json, ExportedNode& out) {
  LOCKSTEP_TRY(json.fields(
      {{"target", [&] { return json.text(out.target); }},
       {"name", [&] { return json.text(out.name); }},
       {"inputs",
        [&] {
          return json.list(out.inputs, [&](ExportedNamedArgument& argument) {
            return read_named_argument(json, argument);
          });
        }},
       {"outputs", [&] { return read_arguments(json, out.outputs); }},
       {"metadata", [&] { return read_metadata(json, out); }},
       {"is_hop_single_tensor_return",
        [&] { return json.boolean(out.gives_single_tensor); }}}));
  return out.target.empty()
             ? Status(json.error("a node has no target before here"))
             : Status();
}

// An object of names.
template <class T>
Status read_named(
    ProgramJson& json,
    std::map<std::string, T, std::less<>>& out,
    Status (*read)(ProgramJson&, T&)) {
  return json.scanner().members([&](std::string_view key) -> Status {
    LOCKSTEP_TRY(json.count(sizeof(T) + 2 * sizeof(std::string)));
    return read(json, out[std::string(key)]);
  });
}

} // namespace

Status read_tensor_meta(ProgramJson& json, ExportedTensorMeta& out) {
  std::int64_t type = 0;
  std::int64_t layout = kStridedLayout;
  const auto sizes = [&json](std::vector<ExportedSize>& list) {
    return json.list(list, [&json](ExportedSize& size) {
      return read_size(json, size);
    });
  };
  LOCKSTEP_TRY(json.fields(
      {{"dtype", [&] { return json.integer(type); }},
       {"sizes", [&] { return sizes(out.sizes); }},
       {"requires_grad", [&] { return json.boolean(out.requires_grad); }},
       {"device", [&] { return read_device(json, out.device); }},
       {"strides", [&] { return sizes(out.strides); }},
       {"storage_offset", [&] { return read_size(json, out.offset); }},
       {"layout", [&] { return json.integer(layout); }}}));
  out.dtype = exported_dtype(type);
  out.is_strided = layout == kStridedLayout;
  return {};
}

Status read_graph(ProgramJson& json, ExportedGraph& out) {
  const ProgramJson::Level level(json);
  LOCKSTEP_TRY(level.status());
  return json.fields(
      {{"inputs", [&] { return read_arguments(json, out.inputs); }},
       {"outputs", [&] { return read_arguments(json, out.outputs); }},
       {"nodes",
        [&] {
          return json.list(out.nodes, [&json](ExportedNode& node) {
            return read_node(json, node);
          });
        }},
       {"tensor_values",
        [&] { return read_named(json, out.tensors, read_tensor_meta); }},
       {"sym_int_values",
        [&] { return read_named(json, out.sym_ints, read_size); }},
       {"is_single_tensor_return",
        [&] { return json.boolean(out.gives_single_tensor); }}});
}

} // namespace lockstep::ckpt::internal
