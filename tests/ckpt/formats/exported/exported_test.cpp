// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <list>
#include <map>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/range_storage.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "tests/ckpt/formats/exported/program_fixture.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

class ExportedTest : public testing::Test {
 protected:
  void replace(
      std::string_view record,
      std::string_view from,
      const std::string& to) {
    replace_in(records_, record, from, to);
  }

  Result<ExportedFile> open() {
    return open_bytes(archive_of(records_));
  }

  static Result<ExportedFile> open_bytes(std::string bytes) {
    static std::list<std::string> kept; // sources do not own their bytes
    LOCKSTEP_ASSIGN(
        ZipReader zip,
        ZipReader::open(
            make_source(as_byte_span(kept.emplace_back(std::move(bytes))))));
    return read_exported(std::make_shared<const ZipReader>(std::move(zip)));
  }

  // "E_PROGRAM at 12: ..." of what is wrong.
  std::string problem() {
    const auto file = open();
    return file ? "none"
                : file.error().detail + " " + file.error().record + ": " +
                      file.error().message;
  }

  Records records_ = program_records();
};

TEST_F(ExportedTest, ReadsGraphSignatureAndWeights) {
  const auto file = open();
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_TRUE(is_exported(*file->zip));
  const ExportedModel& model = file->models.at(0);
  EXPECT_EQ(model.name, "model");
  EXPECT_EQ(model.torch_version, "2.13.0");
  EXPECT_EQ(model.schema_minor, 20);
  EXPECT_EQ(model.guards, std::vector<std::string>{"x > 0"});
  EXPECT_EQ(model.ranges.at("s7").min, 3);
  EXPECT_FALSE(model.ranges.at("s7").max);
  ASSERT_EQ(model.graph.nodes.size(), 2U);
  const ExportedNode& add = model.graph.nodes[0];
  EXPECT_EQ(add.target, "torch.ops.aten.add.Tensor");
  EXPECT_EQ(add.inputs.at(1).name, "other");
  EXPECT_EQ(add.inputs[1].value.text, "p_w");
  EXPECT_EQ(add.stack_trace, "net.py, line 3");
  const ExportedTensorMeta& x = model.graph.tensors.at("x");
  EXPECT_EQ(x.sizes.at(0).symbol(), "s7");
  EXPECT_EQ(x.sizes.at(1).value, 2);
  EXPECT_EQ(x.device, "cuda:0");
  EXPECT_EQ(model.in_tree.leaves(), 1U);
  EXPECT_TRUE(model.out_tree.is_leaf());
  EXPECT_EQ(model.modules, std::vector<std::string>{"a"});
  EXPECT_EQ(model.argument_names, std::vector<std::string>{"x"});
  const ExportedWeight& w = model.weights.at(0);
  EXPECT_EQ(w.record, "data/weights/weight_0");
  EXPECT_TRUE(w.is_parameter);
  EXPECT_EQ(w.tensor.storage->source->load()->size(), 8U);
}

TEST(ExportedSize, IsASymbolOnlyIfItIsNothingElse) {
  const auto symbol = [](const char* text) {
    return std::string(ExportedSize{.expression = text}.symbol());
  };
  EXPECT_EQ(symbol("Symbol('s0', integer=True)"), "s0");
  EXPECT_EQ(symbol("Mul(Integer(2), Symbol('s0'))"), "");
  EXPECT_EQ(symbol("Symbol('s0') + Symbol('s1')"), "");
  EXPECT_EQ(symbol("Symbol('s0"), "");
}

struct BadProgram {
  std::string_view record = {};
  std::string_view from = {};
  std::string to = {};
  std::string_view problem = {};
};

std::string nested_arguments(std::size_t levels) {
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) {
    text += R"({"as_string_to_argument": {"k": )";
  }
  return text + R"({"as_int": 1})" + std::string(2 * levels, '}');
}

// "a.a.w"
std::string deep_path(std::size_t parts) {
  std::string name;
  for (std::size_t i = 1; i < parts; ++i) {
    name += "a.";
  }
  return name + "w";
}

TEST_F(ExportedTest, TellsWhatIsWrong) {
  const auto rows = std::to_array<BadProgram>({
      {kModelRecord, R"("major": 8)", R"("major": 9)", "E_PROGRAM_VERSION"},
      {kModelRecord, R"("schema_version")", R"("other")", "E_PROGRAM_VERSION"},
      {kModelRecord,
       R"({"name": "add"}}, "kind": 1}],
         "outputs": [{"as_tensor": {"name": "relu")",
       R"({"name": "sub"}}, "kind": 1}],
         "outputs": [{"as_tensor": {"name": "relu")",
       "'sub' is used by relu before it is defined"},
      {kModelRecord,
       R"("outputs": [{"as_tensor": {"name": "add"}}])",
       R"("outputs": [{"as_tensor": {"name": "x"}}])",
       "'x' is defined twice, again in add"},
      {kModelRecord,
       R"("as_tensor": {"name": "x"}}, "kind")",
       R"("as_toad": {"name": "x"}}, "kind")",
       "unknown kind 'as_toad'"},
      {kModelRecord,
       R"({"as_tensor": {"name": "x"}}, "kind")",
       R"({}, "kind")",
       "expected one value in an argument"},
      {kModelRecord,
       R"({"as_tensor": {"name": "x"}}, "kind")",
       nested_arguments(100) + R"(, "kind")",
       "E_DEPTH"},
      {kModelRecord,
       R"({"as_tensor": {"name": "x"}}, "kind")",
       R"({"as_int": 99999999999999999999}, "kind")",
       "whole number"},
      {kModelRecord,
       R"({"as_tensor": {"name": "x"}}, "kind")",
       R"({"as_float": "Inf"}, "kind")",
       "expected a number, got 'Inf'"},
      {kModelRecord,
       R"({"parameter": {"arg")",
       R"({"vector": {"arg")",
       "unknown kind 'vector'"},
      {kModelRecord,
       R"({"user_input": {"arg": {"as_tensor": {"name": "x"}}}})",
       R"({"user_input": {"arg": {"as_tensor": {"name": "y"}}}})",
       "expected 'x', got 'y'"},
      {kModelRecord,
       R"(,
        {"user_input": {"arg": {"as_tensor": {"name": "x"}}}})",
       "",
       "another number of inputs"},
      {kModelRecord,
       R"([{\"type\": null, \"context\": null, \"children_spec\": []}])",
       "[]",
       "in_spec has another number of arguments"},
      {kModelRecord,
       R"(\"context\": \"[]\")",
       R"(\"context\": \"[\\\"a\\\"]\")",
       "a dict of 0 values has 1 keys"},
      {kModelRecord, "[1, {", "[2, {", "a structure of version 2; expected 1"},
      {kModelRecord,
       R"("graph_module": {)",
       std::string(200'000, '['),
       "E_PROGRAM"},
      {kModelRecord,
       R"("parameter_name": "w")",
       R"("parameter_name": "v")",
       "E_NO_STORAGE"},
      {kModelRecord,
       R"("parameter_name": "w")",
       R"("parameter_name": ".w")",
       "'.w' is no path of a module"},
      {kModelRecord,
       R"("parameter_name": "w")",
       R"("parameter_name": ")" + deep_path(258) + R"(")",
       "E_DEPTH"},
      {kModelRecord,
       R"({\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []})",
       R"({\"type\": null, \"context\": null, \"children_spec\": []})",
       "in_spec is no pair"},
      {kTableRecord, "weight_0", "weight_1", "E_NO_STORAGE"},
      {kTableRecord, "weight_0", "../../passwd", "E_NO_STORAGE"},
      {kTableRecord,
       R"({"as_int": 2})",
       R"({"as_int": 4611686018427387904})",
       "E_OVERFLOW"},
      {kTableRecord, R"({"as_int": 2})", R"({"as_int": 3})", "E_VIEW_BOUNDS"},
      {kTableRecord,
       R"({"as_int": 2})",
       R"({"as_int": -2})",
       "E_VIEW_NEGATIVE"},
      {kTableRecord, R"("dtype": 7)", R"("dtype": 99)", "element type"},
      {kTableRecord, R"("layout": 7)", R"("layout": 1)", "layout"},
      {kWeightRecord, "\1\1\1\1\1\1\1\1", "\1\1\1\1\1\1\1", "E_VIEW_BOUNDS"},
      {"net/byteorder", "little", "big", "E_BYTEORDER"},
  });
  const auto sound = records_;
  for (const BadProgram& row : rows) {
    records_ = sound;
    replace(row.record, row.from, row.to);
    EXPECT_NE(problem().find(row.problem), std::string::npos)
        << row.problem << " for " << row.to.substr(0, 100) << ": " << problem();
  }
}

TEST_F(ExportedTest, BoundsWhatAFileMakes) {
  // Two bytes each, of which an argument takes more than a hundred.
  std::string many = R"({"as_ints": [0)";
  for (int i = 0; i < 1'500'000; ++i) {
    many += ",0";
  }
  replace(
      kModelRecord,
      R"({"as_tensor": {"name": "x"}}, "kind")",
      many + R"(]}, "kind")");
  EXPECT_NE(problem().find("E_LIMIT"), std::string::npos) << problem();
}

TEST_F(ExportedTest, DamageIsNoticed) {
  const std::string sound = archive_of(records_);
  for (std::size_t cut = 0; cut < sound.size(); cut += 37) {
    EXPECT_FALSE(open_bytes(sound.substr(0, cut))) << cut;
  }
  std::string changed = sound;
  changed[changed.find("relu")] = 'R';
  EXPECT_EQ(open_bytes(changed).error().detail, "E_CRC");
}

TEST_F(ExportedTest, IsWrittenWithOtherWeights) {
  const test::ScratchDir folder;
  const std::string path = folder / "other.pt2";
  const auto file = open();
  ASSERT_TRUE(file);
  const std::string bytes(8, '\2');
  const auto storage = std::make_shared<Storage>(Storage{.nbytes = 8});
  storage->source = make_range_storage(make_source(as_byte_span(bytes)), 0, 8);
  const Status status =
      write_exported(path, *file, {{"data/weights/weight_0", storage}});
  ASSERT_TRUE(status) << to_string(status.error());
  auto source = open_source(path);
  ASSERT_TRUE(source);
  auto zip = ZipReader::open(*source);
  ASSERT_TRUE(zip);
  EXPECT_EQ(zip->root(), "net");
  const auto again =
      read_exported(std::make_shared<const ZipReader>(*std::move(zip)));
  ASSERT_TRUE(again) << to_string(again.error());
  const auto loaded = again->models.at(0).weights.at(0).tensor.storage->source;
  EXPECT_EQ(as_text(*loaded->load()), bytes);

  storage->nbytes = 4;
  EXPECT_EQ(
      write_exported(path, *file, {{"data/weights/weight_0", storage}})
          .error()
          .code,
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      write_exported(path, *file, {{"models/model.json", storage}})
          .error()
          .detail,
      "E_PROGRAM");
}

// A weight that is a pickle stays as it is.
TEST_F(ExportedTest, ReplacesNoPickle) {
  replace(kTableRecord, R"("use_pickle": false)", R"("use_pickle": true)");
  const auto file = open();
  ASSERT_TRUE(file) << to_string(file.error());
  const std::string bytes(8, '\2');
  const auto storage = std::make_shared<Storage>(Storage{.nbytes = 8});
  storage->source = make_range_storage(make_source(as_byte_span(bytes)), 0, 8);
  const test::ScratchDir folder;
  const Status status = write_exported(
      folder / "other.pt2",
      *file,
      {{"data/weights/weight_0", storage}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_PROGRAM");
}

} // namespace
} // namespace lockstep::ckpt
