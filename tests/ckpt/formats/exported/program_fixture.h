// SPDX-License-Identifier: BSD-3-Clause
//
// A small program of torch.export, record by record, to change and to break.
//   Records records = program_records();
//   replace_in(records, kModelRecord, "relu", "gelu");
//   load(make_source(as_byte_span(archive_of(records))), "net.pt2");
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt {

using Records = std::map<std::string, std::string>;

inline constexpr std::string_view kModelRecord = "net/models/model.json";
inline constexpr std::string_view kTableRecord =
    "net/data/weights/model_weights_config.json";
inline constexpr std::string_view kWeightRecord = "net/data/weights/weight_0";

// y = relu(x + w), where x has any number of rows.
inline constexpr const char* kProgramJson = R"json({
  "graph_module": {
    "graph": {
      "inputs": [{"as_tensor": {"name": "p_w"}}, {"as_tensor": {"name": "x"}}],
      "outputs": [{"as_tensor": {"name": "relu"}}],
      "nodes": [
        {"target": "torch.ops.aten.add.Tensor", "name": "add",
         "inputs": [
           {"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
           {"name": "other", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1}],
         "outputs": [{"as_tensor": {"name": "add"}}],
         "metadata": {"stack_trace": "net.py, line 3"}},
        {"target": "torch.ops.aten.relu.default", "name": "relu",
         "inputs": [
           {"name": "self", "arg": {"as_tensor": {"name": "add"}}, "kind": 1}],
         "outputs": [{"as_tensor": {"name": "relu"}}], "metadata": {},
         "is_hop_single_tensor_return": null}],
      "tensor_values": {"x": {"dtype": 7,
        "sizes": [{"as_expr": {"expr_str":
          "Symbol('s7', positive=True, integer=True)",
          "hint": {"as_int": 5}}}, {"as_int": 2}],
        "strides": [{"as_int": 2}, {"as_int": 1}],
        "storage_offset": {"as_int": 0}, "requires_grad": false,
        "device": {"type": "cuda", "index": 0}, "layout": 7}},
      "sym_int_values": {}, "sym_bool_values": {}},
    "signature": {
      "input_specs": [
        {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
        {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
      "output_specs": [{"user_output": {"arg": {"as_tensor":
        {"name": "relu"}}}}]},
    "module_call_graph": [{"fqn": "", "signature": {"inputs": [],
      "outputs": [],
      "in_spec": "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]",
      "out_spec": "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]",
      "forward_arg_names": ["x"]}}, {"fqn": "a", "signature": null}]},
  "range_constraints": {"s7": {"min_val": 3, "max_val": null}},
  "guards_code": ["x > 0"], "torch_version": "2.13.0",
  "schema_version": {"major": 8, "minor": 20}})json";

inline constexpr const char* kWeightsJson = R"({"config": {"w": {
  "path_name": "weight_0", "is_param": true, "use_pickle": false,
  "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 2}],
    "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0},
    "requires_grad": true, "device": {"type": "cpu", "index": null},
    "layout": 7}}}})";

inline constexpr const char* kConstantsRecord =
    "net/data/constants/model_constants_config.json";

/// A row of a table of tensors, [2] of float32.
inline std::string payload_row(
    const std::string& name,
    const std::string& fields) {
  return "\"" + name + R"(": {"is_param": false, )" + fields +
         R"(, "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 2}],
            "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0},
            "requires_grad": false, "layout": 7}})";
}

inline std::string payload_table(const std::string& rows) {
  return R"({"config": {)" + rows + "}}";
}

inline Records program_records() {
  return {
      {"net/archive_format", "pt2"},
      {"net/byteorder", "little"},
      {std::string(kModelRecord), kProgramJson},
      {std::string(kTableRecord), kWeightsJson},
      {std::string(kWeightRecord), std::string(8, '\1')}};
}

inline std::string archive_of(const Records& records) {
  ZipBytes zip;
  for (const auto& [name, text] : records) {
    zip.add(name, text);
  }
  return zip.finish();
}

inline void replace_in(
    Records& records,
    std::string_view record,
    std::string_view from,
    const std::string& to) {
  std::string& text = records[std::string(record)];
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

} // namespace lockstep::ckpt
