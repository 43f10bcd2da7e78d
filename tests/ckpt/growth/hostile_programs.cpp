// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/ckpt/growth/hostile_files.h"

namespace lockstep::ckpt::growth {
namespace {

using bad_inputs::checkpoint;

// A program without inputs and results, and what is beside its graph.
struct Program {
  std::string nodes = {};
  std::string values = {};
  std::string guards = {};
  /// Rows of the table of constants.
  std::string constants = {};
  std::string payload = "01234567";
};

std::string archive(const Program& program) {
  const std::string empty =
      R"(\"children_spec\": [], \"context\": \"[]\", \"type\": )";
  const std::string spec = R"("[1, {\"type\": \"builtins.tuple\", )"
                           R"(\"context\": \"null\", \"children_spec\": [)"
                           R"({\"type\": \"builtins.tuple\", \"context\": )"
                           R"(\"null\", \"children_spec\": []}, )"
                           "{" +
                           empty + R"(\"builtins.dict\"}]}]")";
  const std::string out =
      R"("[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", )"
      R"(\"children_spec\": []}]")";
  const std::string json =
      R"({"graph_module": {"graph": {"inputs": [], "outputs": [], "nodes": [)" +
      program.nodes + R"(], "tensor_values": {)" + program.values +
      R"(}}, "signature": {"input_specs": [], "output_specs": []},)" +
      R"("module_call_graph": [{"fqn": "", "signature": {"in_spec": )" + spec +
      R"(, "out_spec": )" + out + R"(}}]}, "guards_code": [)" + program.guards +
      R"(], "schema_version": {"major": 8, "minor": 20}})";
  ZipBytes zip;
  zip.add("a/archive_format", "pt2");
  zip.add("a/models/model.json", json);
  zip.add(
      "a/data/constants/model_constants_config.json",
      R"({"config": {)" + program.constants + "}}");
  zip.add("a/data/constants/tensor_0", program.payload);
  return zip.finish();
}

std::string comma(std::size_t i) {
  return i == 0 ? "" : ",";
}

std::string rows_of(std::size_t count, const std::string& fields) {
  return repeated(count, [&](std::size_t i) {
    return comma(i) + "\"" + std::to_string(i) +
           R"(":{"path_name":"tensor_0",)" + fields + "}";
  });
}

std::string program_weights(std::size_t n) {
  const std::string fields =
      R"("tensor_meta":{"dtype":7,"sizes":[{"as_int":2}],"strides":[)"
      R"({"as_int":1}],"storage_offset":{"as_int":0},"layout":7})";
  return archive({.constants = rows_of(n / 150, fields)});
}
// One element that is repeated.
std::string program_expanded(std::size_t n) {
  const std::string fields =
      R"("tensor_meta":{"dtype":7,"sizes":[{"as_int":)" +
      std::to_string(n * n) +
      R"(}],"strides":[{"as_int":0}],"storage_offset":{"as_int":0},)"
      R"("layout":7})";
  return archive({.constants = rows_of(n / 150, fields)});
}
// All of them are one pickle.
std::string program_pickles(std::size_t n) {
  Pickle pickle;
  pickle.op(']').mark();
  for (std::size_t i = 0; i < n / 8; ++i) {
    pickle.int8(1);
  }
  return archive(
      {.constants = rows_of(n / 100, R"("use_pickle":true)"),
       .payload = checkpoint(pickle.op('e').stop().bytes())});
}
std::string program_nodes(std::size_t n) {
  return archive({.nodes = repeated(n / 90, [](std::size_t i) {
                    return comma(i) + R"({"target":"torch.ops.mine.f)" +
                           std::to_string(i) +
                           R"(.default","inputs":[],"outputs":[]})";
                  })});
}
std::string program_sizes(std::size_t n) {
  return archive({.values = repeated(n / 120, [](std::size_t i) {
                    return comma(i) + "\"" + std::to_string(i) +
                           R"(":{"dtype":7,"sizes":[{"as_expr":{"expr_str":)"
                           R"("open(" ,"hint":{"as_int":1}}}],"layout":7})";
                  })});
}
std::string program_guards(std::size_t n) {
  return archive({.guards = repeated(n / 40, [](std::size_t i) {
                    return comma(i) + "\"open('" + std::to_string(i) + "')\"";
                  })});
}
// Keys without values, each of which the next one follows.
std::string program_imports(std::size_t n) {
  const std::string keys = repeated(n / 22, [](std::size_t /*i*/) {
    return "default_factory_module";
  });
  return archive({.guards = "\"" + keys + "\""});
}
std::string program_import_names(std::size_t n) {
  return archive(
      {.guards = "\"" +
                 repeated(
                     n / 60,
                     [](std::size_t i) {
                       return "default_factory_module a" + std::to_string(i) +
                              " default_factory_name b" + std::to_string(i) +
                              " ";
                     }) +
                 "\""});
}

} // namespace

std::vector<HostileFile> hostile_programs() {
  return {
      {"program imports", program_imports},
      {"program import names", program_import_names},
      {"program weights", program_weights},
      {"program expanded", program_expanded},
      {"program pickles", program_pickles},
      {"program nodes", program_nodes},
      {"program sizes", program_sizes},
      {"program guards", program_guards}};
}

} // namespace lockstep::ckpt::growth
