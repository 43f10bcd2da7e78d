// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/exported/graph_json.h"
#include "lockstep/ckpt/formats/exported/model_parts_json.h"

namespace lockstep::ckpt::internal {
namespace {

// Of the schema. Minor versions add members, which are skipped.
constexpr std::int64_t kSchemaMajor = 8;

/// How one kind of input or output is read: the members of its object.
template <class Kind>
struct SpecRow {
  std::string_view name = {};
  Kind kind = {};
  /// The member that holds what is meant outside of the graph.
  std::string_view target = {};
  /// Kind of `arg`, which names a value; `kNone` where it is an argument with
  /// its kind.
  ExportedKind argument = ExportedKind::kTensor;
};

using In = ExportedInputKind;
using Out = ExportedOutputKind;

constexpr std::array kInputs = {
    SpecRow<In>{"user_input", In::kUser, "", ExportedKind::kNone},
    SpecRow<In>{"parameter", In::kParameter, "parameter_name"},
    SpecRow<In>{"buffer", In::kBuffer, "buffer_name"},
    SpecRow<In>{"tensor_constant", In::kTensorConstant, "tensor_constant_name"},
    SpecRow<In>{
        "custom_obj",
        In::kCustomObject,
        "custom_obj_name",
        ExportedKind::kCustomObject},
    SpecRow<In>{"token", In::kToken, "", ExportedKind::kToken},
    SpecRow<In>{"constant_input", In::kConstant, "name", ExportedKind::kNone},
};

constexpr std::array kOutputs = {
    SpecRow<Out>{"user_output", Out::kUser, "", ExportedKind::kNone},
    SpecRow<Out>{"loss_output", Out::kLoss, ""},
    SpecRow<Out>{"buffer_mutation", Out::kBufferMutation, "buffer_name"},
    SpecRow<Out>{
        "gradient_to_parameter",
        Out::kGradientToParameter,
        "parameter_name"},
    SpecRow<Out>{
        "gradient_to_user_input",
        Out::kGradientToUserInput,
        "user_input_name"},
    SpecRow<Out>{
        "user_input_mutation",
        Out::kUserInputMutation,
        "user_input_name"},
    SpecRow<Out>{"token", Out::kToken, "", ExportedKind::kToken},
    SpecRow<Out>{
        "parameter_mutation",
        Out::kParameterMutation,
        "parameter_name"},
};

class ModelJsonReader {
 public:
  ModelJsonReader(
      std::string_view text,
      std::string_view record,
      const Limits& limits,
      ExportedModel& out)
      : record_(record),
        limits_(limits),
        json_(text, record, limits),
        out_(out) {}

  Status run() {
    LOCKSTEP_TRY(json_.fields(
        {{"graph_module", [this] { return graph_module(); }},
         {"range_constraints", [this] { return ranges(); }},
         {"schema_version", [this] { return version(); }},
         {"torch_version", [this] { return json_.text(out_.torch_version); }},
         {"verifiers", [this] { return verifiers(); }},
         {"guards_code", [this] { return texts(out_.guards); }}}));
    return json_.scanner().end();
  }

  /// Of all members the version only.
  Status run_version() {
    return json_.fields({{"schema_version", [this] { return version(); }}});
  }

 private:
  Status version() {
    return json_.fields(
        {{"major", [this] { return json_.integer(out_.schema_major); }},
         {"minor", [this] { return json_.integer(out_.schema_minor); }}});
  }

  // By which rules the graph was made.
  Status verifiers() {
    std::vector<std::string> names;
    LOCKSTEP_TRY(texts(names));
    out_.is_decomposed =
        !names.empty() && std::ranges::find(names, "TRAINING") == names.end();
    return {};
  }

  Status graph_module() {
    return json_.fields(
        {{"graph", [this] { return read_graph(json_, out_.graph); }},
         {"signature",
          [this] {
            return json_.fields(
                {{"input_specs", [this] { return inputs(); }},
                 {"output_specs", [this] { return outputs(); }}});
          }},
         {"module_call_graph", [this] { return call_graph(); }},
         {"treespec_namedtuple_fields", [this] { return named_tuples(); }}});
  }

  Status inputs() {
    return json_.list(out_.inputs, [this](ExportedInput& input) {
      return spec(kInputs, input, &input.is_persistent);
    });
  }

  Status outputs() {
    return json_.list(out_.outputs, [this](ExportedOutput& output) {
      return spec(kOutputs, output, nullptr);
    });
  }

  // {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}}
  template <class Rows, class Spec>
  Status spec(const Rows& rows, Spec& out, bool* is_persistent) {
    std::size_t members = 0;
    LOCKSTEP_TRY(json_.scanner().members([&](std::string_view key) -> Status {
      const auto row = std::ranges::find(rows, key, &Rows::value_type::name);
      if (row == rows.end()) {
        return json_.error(
            format("an input or output of the unknown kind '{}'", escape(key)));
      }
      ++members;
      out.kind = row->kind;
      return json_.scanner().members([&](std::string_view name) -> Status {
        if (name == "arg" || name == "value") {
          return argument(row->argument, out.argument);
        }
        if (name == "persistent" && is_persistent != nullptr) {
          return json_.boolean(*is_persistent);
        }
        return !row->target.empty() && name == row->target
                   ? json_.text(out.target)
                   : json_.scanner().skip_value();
      });
    }));
    return members == 1
               ? Status()
               : Status(json_.error("expected one kind of input or output"));
  }

  Status argument(ExportedKind kind, ExportedArgument& out) {
    if (kind == ExportedKind::kNone) {
      return read_argument(json_, out);
    }
    out.kind = kind;
    return read_name(json_, out.text);
  }

  // The entry of the whole module, "", says how arguments are nested.
  Status call_graph() {
    return json_.scanner().elements([this]() -> Status {
      std::string name;
      std::string in_tree;
      std::string out_tree;
      std::vector<std::string> arguments;
      const auto signature = [&] {
        return json_.fields(
            {{"in_spec", [&] { return json_.text(in_tree); }},
             {"out_spec", [&] { return json_.text(out_tree); }},
             {"forward_arg_names", [&] { return texts(arguments); }}});
      };
      LOCKSTEP_TRY(json_.fields(
          {{"fqn", [&] { return json_.text(name); }},
           {"signature", signature}}));
      if (!name.empty()) {
        out_.modules.push_back(std::move(name));
        return json_.count(sizeof(std::string));
      }
      if (in_tree.empty()) {
        return {};
      }
      out_.argument_names = std::move(arguments);
      LOCKSTEP_TRY(read_tree(in_tree, record_, limits_, out_.in_tree));
      return read_tree(out_tree, record_, limits_, out_.out_tree);
    });
  }

  Status named_tuples() {
    return json_.scanner().members([this](std::string_view key) {
      return json_.fields({{"field_names", [&] {
                              return texts(out_.named_tuples[std::string(key)]);
                            }}});
    });
  }

  Status ranges() {
    return json_.scanner().members([this](std::string_view key) -> Status {
      LOCKSTEP_TRY(json_.count(sizeof(ExportedRange)));
      ExportedRange& range = out_.ranges[std::string(key)];
      return json_.fields(
          {{"min_val", [&] { return json_.integer(range.min.emplace()); }},
           {"max_val", [&] { return json_.integer(range.max.emplace()); }}});
    });
  }

  Status texts(std::vector<std::string>& out) {
    return json_.list(out, [this](std::string& text) {
      return json_.text(text);
    });
  }

  std::string_view record_;
  const Limits& limits_;
  ProgramJson json_;
  ExportedModel& out_;
};

} // namespace

Status read_model(
    std::string_view text,
    std::string_view record,
    const Limits& limits,
    ExportedModel& out) {
  Status status = ModelJsonReader(text, record, limits, out).run();
  if (!status && out.schema_major == 0) {
    // The version stands behind the graph, which another version may have
    // broken for this reader.
    ExportedModel other;
    if (ModelJsonReader(text, record, limits, other).run_version()) {
      out.schema_major = other.schema_major;
      out.schema_minor = other.schema_minor;
    }
  }
  const bool is_other =
      out.schema_major != 0 && out.schema_major != kSchemaMajor;
  if (is_other || (status && out.schema_major == 0)) {
    return read_error(
        ErrorCode::kUnsupported,
        "E_PROGRAM_VERSION",
        format(
            "{}: the program has the schema {}.{}; expected {}.x, as torch "
            "2.13 writes it",
            record,
            out.schema_major,
            out.schema_minor,
            kSchemaMajor),
        "export it again with such a torch");
  }
  return status;
}

Result<std::vector<PayloadRow>> read_payloads(
    std::string_view text,
    std::string_view record,
    const Limits& limits) {
  ProgramJson json(text, record, limits);
  std::vector<PayloadRow> rows;
  const auto row = [&](std::string_view name) -> Status {
    LOCKSTEP_TRY(json.count(sizeof(PayloadRow)));
    PayloadRow& out = rows.emplace_back(PayloadRow{.name = std::string(name)});
    return json.fields(
        {{"path_name", [&] { return json.text(out.path); }},
         {"is_param", [&] { return json.boolean(out.is_parameter); }},
         {"use_pickle", [&] { return json.boolean(out.is_pickle); }},
         {"tensor_meta", [&] { return read_tensor_meta(json, out.meta); }}});
  };
  LOCKSTEP_TRY(
      json.fields({{"config", [&] { return json.scanner().members(row); }}}));
  LOCKSTEP_TRY(json.scanner().end());
  return rows;
}

} // namespace lockstep::ckpt::internal
