// SPDX-License-Identifier: BSD-3-Clause
//
// Programs as checkpoints: what the commands see of one, and what may be
// written in its place.
#include <algorithm>
#include <list>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/ckpt/formats/exported/program_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExportedCheckpoint : public testing::Test {
 protected:
  static std::shared_ptr<ByteSource> source_of(const Records& records) {
    static std::list<std::string> kept; // sources do not own their bytes
    return make_source(as_byte_span(kept.emplace_back(archive_of(records))));
  }
  [[nodiscard]] Result<Checkpoint> open() const {
    return load(source_of(records_), "net.pt2");
  }
  [[nodiscard]] Checkpoint opened() const {
    auto file = open();
    EXPECT_TRUE(file) << to_string(file.error());
    return file ? *std::move(file) : Checkpoint();
  }
  // What `rewrite` says of another root.
  static std::string refusal(const Checkpoint& file, const Value& root) {
    MemoryFs fs;
    const Status status = rewrite(file, root, "out.pt2", {}, fs);
    EXPECT_EQ(status.has_value(), fs.stat("out.pt2").has_value());
    return status ? ""
                  : status.error().detail + " " + to_string(status.error());
  }
  static std::vector<std::string> names(const Value& root) {
    std::vector<std::string> names;
    EXPECT_TRUE(
        for_each_tensor(root, [&names](const std::string& name, const Tensor&) {
          names.push_back(name);
        }));
    return names;
  }
  void add_constant() {
    records_[kConstantsRecord] = payload_table(
        payload_row("mask", R"("path_name": "tensor_0", "use_pickle": false)"));
    records_["net/data/constants/tensor_0"] = std::string(8, '\3');
  }

  Records records_ = program_records();
};

TEST_F(ExportedCheckpoint, IsItsStateDict) {
  const Checkpoint file = opened();
  EXPECT_EQ(file.format, "exported");
  EXPECT_EQ(file.era, "torch 2.13.0, schema 8.20");
  EXPECT_THAT(names(file.root), ElementsAre("w"));
  EXPECT_TRUE(file.root.find("w")->as_tensor()->is_parameter);
  EXPECT_EQ(file.root.as_dict()->kind, Dict::Kind::kOrderedDict);
  const auto report = verify(source_of(records_), "net.pt2");
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->is_sound());
  EXPECT_EQ(report->tensors, 1U);
}

TEST_F(ExportedCheckpoint, HasConstantsBesideIt) {
  add_constant();
  const Checkpoint file = opened();
  EXPECT_THAT(names(file.root), ElementsAre("state_dict.w", "constants.mask"));
  EXPECT_EQ(locate_weights(file.root).key, "state_dict");
  const auto model = extract_model(file);
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_THAT(names(model->state_dict), ElementsAre("w"));
  EXPECT_FALSE(model->state_dict.find("w")->as_tensor()->is_parameter);
  EXPECT_THAT(model->left_out, ElementsAre("mask"));
  EXPECT_EQ(model->parameters, 1U);
}

TEST_F(ExportedCheckpoint, OfTorch26LiesInNoFolder) {
  const std::string path = "testdata/programs/torch26.pt2";
  const auto file = load(path);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->format, "exported");
  EXPECT_EQ(file->era, "torch 2.6.0+cu124, schema 8.2");
  EXPECT_THAT(
      names(*file->root.find("state_dict")),
      ElementsAre(
          "words.weight",
          "norm.weight",
          "norm.bias",
          "last.weight",
          "norm.running_mean",
          "norm.running_var",
          "norm.num_batches_tracked"));
  EXPECT_THAT(
      names(*file->root.find("constants")),
      testing::UnorderedElementsAre("scale", "shift"));
  const auto report = verify(path);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->is_sound());
  const auto scanned = scan_path(path);
  ASSERT_TRUE(scanned) << to_string(scanned.error());
  EXPECT_EQ(scanned->front().verdict, Verdict::kClean);
  EXPECT_EQ(scanned->front().operators, 14U);
}

TEST_F(ExportedCheckpoint, ErrorsOfTorch26NameTheFileAndThePlaceInIt) {
  std::string bytes =
      read_text(real_fs(), "testdata/programs/torch26.pt2").value();
  const auto record = bytes.find("archive/data.pkl");
  const auto pickle = bytes.find("\x80\x02", record);
  ASSERT_NE(pickle, std::string::npos);
  bytes.at(pickle + 2) = '\xff';
  const auto damaged =
      load(make_source(as_byte_span(bytes)), "net.pt2", {.check_crc = false});
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().path, "net.pt2");
  EXPECT_EQ(
      damaged.error().record,
      "serialized_state_dict.pt!archive/data.pkl");
  const auto file = load("testdata/programs/torch26.pt2");
  const auto others = load("testdata/programs/torch26.pt2");
  ASSERT_TRUE(file && others);
  EXPECT_THAT(
      refusal(*file, others->root),
      HasSubstr("of a program that torch 2.9 or newer exports"));
}

TEST_F(ExportedCheckpoint, IsToldByItsArchiveAlone) {
  // A checkpoint with such a record is a checkpoint.
  records_["net/data.pkl"] = bad_inputs::tensor_pickle();
  records_["net/data/0"] = std::string(16, '\1');
  records_["net/version"] = "3\n";
  EXPECT_EQ(opened().format, "zip");
  records_.erase("net/data.pkl");
  records_.erase("net/archive_format");
  EXPECT_THAT(
      to_string(open().error()),
      HasSubstr("a program of torch.export"));
}

TEST_F(ExportedCheckpoint, CompiledPackagesAreNamed) {
  records_.erase(std::string(kModelRecord));
  EXPECT_EQ(open().error().detail, "E_PROGRAM");
  records_["net/data/aotinductor/model/x.so"] =
      "\x7f"
      "ELF";
  EXPECT_EQ(open().error().detail, "E_WRONG_FORMAT");
  EXPECT_THAT(to_string(open().error()), HasSubstr("AOTInductor"));
  EXPECT_EQ(scan(source_of(records_), "net.pt2").verdict, Verdict::kFound);
}

TEST_F(ExportedCheckpoint, ReadsPicklesThatAreCheckpoints) {
  records_[kConstantsRecord] = payload_table(
      payload_row("sub", R"("path_name": "tensor_0", "use_pickle": true)") +
      "," +
      payload_row("again", R"("path_name": "tensor_0", "use_pickle": true)") +
      "," +
      payload_row("odd", R"("path_name": "opaque_obj_0", "use_pickle": true)"));
  records_["net/data/constants/tensor_0"] = bad_inputs::checkpoint();
  records_["net/data/constants/opaque_obj_0"] = "cos\nsystem\n.";
  const Checkpoint file = opened();
  EXPECT_THAT(
      names(file.root),
      ElementsAre("state_dict.w", "constants.sub.w", "constants.again.w"));
  ASSERT_EQ(file.warnings.size(), 1U);
  EXPECT_EQ(file.warnings[0].name, "W_PROGRAM_PICKLE");
  EXPECT_THAT(file.warnings[0].text, HasSubstr("'odd'"));
  const ScanReport report = scan(source_of(records_), "net.pt2");
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].name, "os.system");
  EXPECT_EQ(report.findings[0].record, "net/data/constants/opaque_obj_0");
}

TEST_F(ExportedCheckpoint, ScanKnowsAGraphWithoutTheArchivesWord) {
  records_.erase("net/archive_format");
  replace_in(records_, kModelRecord, "aten.relu.default", "aten.from_file.x");
  const auto findings = [this] {
    return scan(source_of(records_), "net.pt2").findings.size();
  };
  EXPECT_EQ(findings(), 1U);
  // Escaped, as JSON may be.
  replace_in(records_, kModelRecord, "graph_module", "graph\\u005fmodule");
  EXPECT_EQ(findings(), 1U);
  // Another JSON of such a name is no graph.
  records_[std::string(kModelRecord)] = R"({"target": "anything"})";
  EXPECT_EQ(findings(), 0U);
}

TEST_F(ExportedCheckpoint, OfTorch26InAnotherIsNotFollowed) {
  std::string weights = "none";
  for (int level = 0; level < 3; ++level) {
    weights = archive_of(
        {{"serialized_exported_program.json", kProgramJson},
         {"serialized_state_dict.pt", weights}});
  }
  records_ = {
      {"serialized_exported_program.json", kProgramJson},
      {"serialized_state_dict.pt", weights}};
  EXPECT_THAT(to_string(open().error()), HasSubstr("another program"));
}

TEST_F(ExportedCheckpoint, AProgramInAProgramIsNotFollowed) {
  const std::string inner = archive_of(records_);
  records_[kConstantsRecord] = payload_table(
      payload_row("sub", R"("path_name": "tensor_0", "use_pickle": true)"));
  records_["net/data/constants/tensor_0"] = inner;
  const Checkpoint file = opened();
  EXPECT_THAT(names(file.root), ElementsAre("w"));
  ASSERT_EQ(file.warnings.size(), 1U);
  EXPECT_THAT(file.warnings[0].text, HasSubstr("another program"));
}

TEST_F(ExportedCheckpoint, SeveralProgramsHaveTheirNames) {
  records_["net/models/other.json"] = kProgramJson;
  records_["net/data/weights/other_weights_config.json"] = kWeightsJson;
  const Checkpoint file = opened();
  EXPECT_THAT(names(file.root), ElementsAre("model.w", "other.w"));
  EXPECT_EQ(
      file.root.find("model")->find("w")->as_tensor()->storage,
      file.root.find("other")->find("w")->as_tensor()->storage);
  EXPECT_EQ(extract_model(file).error().detail, "E_NO_MODEL");
  EXPECT_TRUE(extract_model(file, {.key = "other"}));
  EXPECT_EQ(refusal(file, file.root), "");
}

TEST_F(ExportedCheckpoint, ItsSummaryTellsOfTheGraph) {
  const Checkpoint file = opened();
  const auto summary = summarize(file);
  ASSERT_TRUE(summary);
  const std::string text = to_text(*summary, "net.pt2");
  for (const char* line :
       {"format      PyTorch exported program, torch 2.13.0, schema 8.20",
        "inputs      x float32 [s7, 2]\n",
        "outputs     relu tensor\n",
        "graph       2 calls: aten.add.Tensor 1, aten.relu.default 1\n",
        "dynamic     s7 from 3\n",
        "'lockstep ckpt scan' looks into them"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(ExportedCheckpoint, GraphsAreCompared) {
  const Checkpoint file = opened();
  EXPECT_EQ(graph_difference(file, opened()), "");
  EXPECT_EQ(graph_difference(file, Checkpoint()), "");
  replace_in(records_, kModelRecord, "aten.relu.default", "aten.gelu.default");
  EXPECT_EQ(
      graph_difference(file, opened()),
      "call 1 is aten.relu.default and aten.gelu.default");
  records_ = program_records();
  replace_in(
      records_,
      kModelRecord,
      "\"name\": \"other\"",
      "\"name\": \"alpha\"");
  EXPECT_EQ(
      graph_difference(file, opened()),
      "call 0, aten.add.Tensor, takes or gives other values");
}

TEST_F(ExportedCheckpoint, TakesOtherValuesOfTheSameKind) {
  const Checkpoint file = opened();
  const auto path = std::string("out.pt2");
  MemoryFs fs;
  const Value other =
      Value::dict({{"w", tensor_of<float>(DType::kFloat32, {5, 6}, {2})}});
  ASSERT_TRUE(rewrite(file, other, path, {}, fs));
  const auto back = load(path, {}, fs);
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(*digest(back->root), *digest(other));
  EXPECT_EQ(graph_difference(file, *back), "");
  EXPECT_EQ(back->archive_name, "net");
}

TEST_F(ExportedCheckpoint, NamesEverythingThatDoesNotFit) {
  add_constant();
  const Checkpoint file = opened();
  const auto numbers = [](std::vector<std::int64_t> sizes) {
    return tensor_of<float>(
        DType::kFloat32,
        std::vector<float>(
            static_cast<std::size_t>(sizes.empty() ? 1 : sizes[0]),
            1.0F),
        sizes);
  };
  const std::string text = refusal(
      file,
      Value::dict(
          {{"state_dict",
            Value::dict({{"w", numbers({3})}, {"v", numbers({2})}})},
           {"constants", Value::dict({})},
           {"epoch", 3}}));
  for (const char* part :
       {"E_PROGRAM_TIED",
        "'state_dict.v' is no weight of the program",
        "'w' is float32 [2] in the program, got float32 [3]",
        "'constants.mask' is missing",
        "'epoch' is no weight of the program",
        "merge IN.pt2 WEIGHTS.pt OUT.pt2"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(
      refusal(file, Value::dict({{"w", 1}})),
      HasSubstr("'state_dict.w' is missing"));
  EXPECT_THAT(refusal(file, Value(3)), HasSubstr("is missing"));
}

TEST_F(ExportedCheckpoint, TiedWeightsStayEqual) {
  records_[std::string(kTableRecord)] = payload_table(
      payload_row("w", R"("path_name": "weight_0", "use_pickle": false)") +
      "," +
      payload_row("v", R"("path_name": "weight_0", "use_pickle": false)"));
  const Checkpoint file = opened();
  const auto values = [](float last) {
    return tensor_of<float>(DType::kFloat32, {1, last}, {2});
  };
  EXPECT_EQ(
      refusal(file, Value::dict({{"w", values(2)}, {"v", values(2)}})),
      "");
  EXPECT_THAT(
      refusal(file, Value::dict({{"w", values(2)}, {"v", values(3)}})),
      HasSubstr("shares memory"));
  EXPECT_THAT(
      refusal(
          file,
          Value::dict({{"w", values(2)}, {"v", *file.root.find("v")}})),
      HasSubstr("shares memory"));
}

TEST_F(ExportedCheckpoint, NothingElseIsWrittenAsOne) {
  MemoryFs fs;
  const Status status = save(
      "x.pt2",
      Value::dict({{"w", tensor_of<float>(DType::kFloat32, {1}, {1})}}),
      {.format = "pt2"},
      fs);
  EXPECT_EQ(status.error().detail, "E_PROGRAM_TIED");
  for (const FormatWriter& writer : format_writers()) {
    EXPECT_NE(writer.name, "pt2");
  }
}

} // namespace
} // namespace lockstep::ckpt
