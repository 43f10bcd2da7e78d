// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep ckpt convert` says of what a format has no place for.
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/torchscript/script_pickler.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/cli/command_test.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

class ConvertPlaces : public test::CommandTest {};

TEST_F(ConvertPlaces, ConvertNamesTheMetadataOfTheFileThatHasNoPlace) {
  put("training.pth.tar", "m.pt");
  ASSERT_EQ(run("convert m.pt m.safetensors"), 0) << text("err.txt");
  for (const char* to : {"npz", "dcp", "libtorch"}) {
    ASSERT_EQ(run(format("convert m.safetensors {} --to {}", to, to)), 0)
        << text("err.txt");
    EXPECT_THAT(
        text("out.txt"),
        HasSubstr(
            format("left out: __metadata__; {} has no place for it\n", to)));
  }
  ASSERT_EQ(run("convert m.safetensors again.npz --json"), 0);
  EXPECT_THAT(
      text("out.txt"),
      HasSubstr(R"("left_out":["_metadata","__metadata__"])"));
  ASSERT_EQ(run("convert m.safetensors back.pt"), 0);
  EXPECT_THAT(text("out.txt"), testing::Not(HasSubstr("left out")));
}

// --all would not take attributes of the dict around the weights either.
TEST_F(ConvertPlaces, ConvertTellsAttributesAroundTheWeightsFromTheirOwn) {
  using ckpt::Dict;
  using ckpt::Value;
  const Dict weights{
      .kind = Dict::Kind::kOrderedDict,
      .items = {{"w", ckpt::bytes_tensor("ab", {2})}},
      .attributes = {{"note", 2}, {"_metadata", Value::dict({})}}};
  const Dict root{
      .kind = Dict::Kind::kOrderedDict,
      .items = {{"state_dict", weights}, {"epoch", 3}},
      .attributes = {{"note", 1}}};
  ASSERT_TRUE(ckpt::save(path("m.pt"), root));
  ASSERT_EQ(run("convert m.pt m.npz"), 0) << text("err.txt");
  EXPECT_THAT(
      text("out.txt"),
      HasSubstr("left out: epoch; --all takes everything\n"
                "left out: state_dict._metadata, the versions of the modules; "
                "npz has no place for it\n"
                "left out: note, state_dict.note; npz has no place for it\n"));
  ASSERT_EQ(run("convert m.pt again.npz --json"), 0) << text("err.txt");
  EXPECT_THAT(
      text("out.txt"),
      HasSubstr(R"("left_out":["epoch","state_dict._metadata","note",)"
                R"("state_dict.note"])"));
}

// Once: as the attribute, not again as the tensor in it.
TEST_F(ConvertPlaces, ConvertNamesATensorInAnAttributeOnce) {
  using ckpt::Dict;
  using ckpt::Value;
  const Dict root{
      .kind = Dict::Kind::kOrderedDict,
      .items = {{"w", ckpt::bytes_tensor("ab", {2})}},
      .attributes = {
          {"ema", ckpt::bytes_tensor("cd", {2})},
          {"more", Value::dict({{"x", ckpt::bytes_tensor("ef", {2})}})}}};
  ASSERT_TRUE(ckpt::save(path("m.pt"), root));
  ASSERT_EQ(run("convert m.pt m.safetensors --json"), 0) << text("err.txt");
  EXPECT_THAT(text("out.txt"), HasSubstr(R"("left_out":["ema","more"])"));
}

// What is chosen, and that the rest is named.
TEST_F(ConvertPlaces, ConvertTakesTheModelAndNamesItsAverages) {
  using ckpt::Value;
  struct TakenRow {
    Value root = {};
    std::vector<std::string> taken = {};
    const char* left_out = "";
  };
  const Value w = ckpt::bytes_tensor("ab", {2});
  const Value flat = Value::dict({{"w", w}});
  const auto copy = [] {
    return Value::dict({{"w", ckpt::bytes_tensor("cd", {2})}});
  };
  int number = 0;
  for (const TakenRow& row :
       {TakenRow{
            Value::dict({{"model", flat}, {"ema", copy()}}),
            {"w"},
            R"("ema")"},
        TakenRow{
            Value::dict(
                {{"model", Value::dict({{"enc", flat}, {"dec", copy()}})},
                 {"ema", copy()}}),
            {"enc.w", "dec.w"},
            R"("ema")"},
        TakenRow{
            Value::dict({{"params", flat}, {"epoch", 3}}),
            {"w"},
            R"("epoch")"},
        TakenRow{
            Value::dict(
                {{"params", flat},
                 {"fc.weight", ckpt::bytes_tensor("ef", {2})}}),
            {"params.w", "fc.weight"}}}) {
    const std::string name = format("m{}", ++number);
    ASSERT_TRUE(ckpt::save(path(name + ".pt"), row.root));
    ASSERT_EQ(run(format("convert {}.pt {}.safetensors --json", name, name)), 0)
        << text("err.txt");
    EXPECT_THAT(
        text("out.txt"),
        HasSubstr(format(R"("left_out":[{}])", row.left_out)));
    EXPECT_THAT(
        names(name + ".safetensors"),
        testing::UnorderedElementsAreArray(row.taken));
  }
}

TEST_F(ConvertPlaces, ConvertKeepsTheVersionsOfModulesOrSaysThatItCannot) {
  put("training.pth.tar", "m.pt");
  ASSERT_EQ(run("pick m.pt state_dict -o w.pt"), 0) << text("err.txt");
  const auto left_out = HasSubstr("left out: _metadata");
  ASSERT_EQ(run("convert w.pt w.safetensors"), 0);
  EXPECT_THAT(text("out.txt"), testing::Not(left_out));
  ASSERT_EQ(run("convert w.safetensors back.pt"), 0);
  const auto versions = [this](const char* name) {
    const auto file = ckpt::load(path(name)).value();
    const auto* metadata = ckpt::state_metadata(*file.root.as_dict());
    return metadata == nullptr ? "" : ckpt::to_text(*metadata);
  };
  EXPECT_THAT(versions("w.pt"), HasSubstr("'version': 2"));
  EXPECT_EQ(versions("back.pt"), versions("w.pt"));
  ASSERT_EQ(run("convert w.pt w.npz"), 0);
  EXPECT_THAT(text("out.txt"), left_out);
  ASSERT_EQ(run("convert w.pt w.dcp --to dcp --json"), 0);
  EXPECT_THAT(text("out.txt"), HasSubstr(R"("left_out":["_metadata"])"));
  ASSERT_EQ(run("convert m.pt all.npz --to npz"), 0);
  EXPECT_THAT(text("out.txt"), HasSubstr("left out: state_dict._metadata"));
  ASSERT_EQ(run("convert m.pt all.dcp --to dcp"), 0);
  EXPECT_THAT(text("out.txt"), HasSubstr("left out: state_dict._metadata"));
  // What is nested goes along under the names of its tensors.
  ASSERT_EQ(run("convert m.pt all.safetensors --all"), 0);
  EXPECT_THAT(text("out.txt"), testing::Not(HasSubstr("_metadata")));
  EXPECT_THAT(
      versions("all.safetensors"),
      HasSubstr("'state_dict.1': {\n    'version': 2,"));
}

// What becomes something else, once for each kind; of integers below "state",
// which come back, nothing is said.
TEST_F(ConvertPlaces, ConvertNamesValuesThatChange) {
  using ckpt::Value;
  ckpt::Tensor tagged = ckpt::floats({1});
  tagged.attributes = std::make_shared<Value>(Value::dict({{"tag", "note"}}));
  const Value one = ckpt::floats({1});
  const Value weights = Value::dict({{"fc.w", tagged}, {"fc.b", one}});
  const Value root = Value::dict(
      {{"state_dict", weights},
       {"pair", Value::tuple({one, one})},
       {"size", ckpt::Size{{1, 2}}},
       {"betas", Value::tuple({0.9, 0.99})},
       {"state", Value::dict({{0, one}})},
       {"ints", Value::dict({{1, one}, {2, one}})},
       {"keys", Value::dict({{"a", one}, {1.5, one}, {true, 2}})}});
  ASSERT_TRUE(ckpt::save(path("m.pt"), root));
  const auto warned = [&](const std::string& to) {
    EXPECT_EQ(run(format("convert m.pt new-{} --to {} --force", to, to)), 0)
        << text("err.txt");
    std::vector<std::string> lines;
    for (const std::string& line : split(text("out.txt"), '\n')) {
      if (line.starts_with("warning: ")) {
        lines.push_back(line.substr(9));
      }
    }
    return lines;
  };
  EXPECT_THAT(
      warned("dcp"),
      UnorderedElementsAre(
          "1 tensor loses its attributes: 'state_dict.fc.w'",
          "4 keys that are not text become text: 'ints.1' and 3 more"));
  EXPECT_THAT(
      warned("libtorch"),
      UnorderedElementsAre(
          "1 tensor loses its attributes: 'state_dict.fc.w'",
          "2 tuples become lists: 'pair' and 1 more",
          "2 keys that are not text become text: 'keys.1.5' and 1 more"));
  for (const char* to : {"npz", "safetensors"}) {
    EXPECT_THAT(
        warned(to),
        UnorderedElementsAre(
            "1 tensor loses its attributes: 'state_dict.fc.w'"));
  }
  EXPECT_THAT(warned("pt"), UnorderedElementsAre());
  // Only a key that is "state" itself brings integers back.
  const Value dotted = Value::dict({{"optim.state", Value::dict({{0, one}})}});
  ASSERT_TRUE(ckpt::save(path("m.pt"), dotted));
  EXPECT_THAT(
      warned("dcp"),
      UnorderedElementsAre(
          "1 key that is not text becomes text: 'optim.state.0'"));
  const Value empties = Value::dict(
      {{"w", one},
       {"cfg", Value::dict({})},
       {"steps", Value::dict({{"t", Value::tuple({})}})}});
  ASSERT_TRUE(ckpt::save(path("m.pt"), empties));
  for (const char* to : {"npz", "safetensors"}) {
    EXPECT_THAT(
        warned(to),
        UnorderedElementsAre(
            "2 empty dicts, lists or tuples are left out: 'cfg' and 1 more"));
  }
  EXPECT_THAT(
      warned("dcp"),
      UnorderedElementsAre(
          "1 empty dict is not there for PyTorch's reader: 'cfg'"));
  const Value pair = Value::tuple({1, one});
  ASSERT_TRUE(ckpt::save(path("m.pt"), pair));
  EXPECT_THAT(
      warned("libtorch"),
      UnorderedElementsAre("1 tuple becomes a list"));
  ASSERT_TRUE(ckpt::save(path("m.pt"), Value::dict({{7, one}})));
  EXPECT_THAT(
      warned("npz"),
      UnorderedElementsAre("1 key that is not text becomes text: '7'"));
}

// A program as TorchScript saves it: an object of a class of its own.
void save_program(const std::string& path) {
  using ckpt::internal::ScriptAttribute;
  ckpt::Tensor weight = ckpt::floats({1, 2});
  weight.requires_grad = true;
  const auto tensor = [](std::string name, ckpt::Value value) {
    return ScriptAttribute{
        .name = std::move(name),
        .type = "Tensor",
        .value = std::move(value)};
  };
  const std::vector<ckpt::internal::ScriptClass> classes{
      {.name = "Net",
       .attributes =
           {{.name = "training", .type = "bool", .value = false},
            tensor("mask", ckpt::floats({3})),
            {.name = "fc", .object = 1}}},
      {.name = "Linear", .attributes = {tensor("weight", weight)}}};
  ckpt::PickledTree tree = ckpt::internal::ScriptPickler(classes).run().value();
  std::vector<ckpt::internal::ArchiveRecord> records;
  records.reserve(tree.storages.size() + 4);
  for (const auto& storage : tree.storages) {
    records.push_back(
        {.name = format("data/{}", records.size()), .storage = storage});
  }
  records.push_back({.name = "data.pkl", .text = tree.pickle});
  records.push_back({.name = "code/__torch__.py", .text = "class Net: ..."});
  records.push_back(
      {.name = "constants.pkl",
       .text = ckpt::write_pickle(ckpt::Tuple{}).value().pickle});
  records.push_back({.name = "version", .text = "3\n"});
  ckpt::internal::save_archive(path, std::move(records), {}, real_fs()).value();
}

TEST_F(ConvertPlaces, ConvertSaysThatAProgramIsNotWritten) {
  save_program(path("m.pt"));
  for (const char* to : {"pt", "pt-legacy", "safetensors", "npz", "dcp"}) {
    ASSERT_EQ(run(format("convert m.pt new-{} --to {}", to, to)), 0)
        << text("err.txt");
    EXPECT_THAT(
        text("out.txt"),
        HasSubstr("warning: the TorchScript program __torch__.Net is not "
                  "written; only its tensors are\n"));
    const auto file = ckpt::load(path(format("new-{}", to)));
    ASSERT_TRUE(file);
    EXPECT_THAT(
        ckpt::keys_of(file->root),
        UnorderedElementsAre("mask", "fc.weight"))
        << to;
  }
  for (const char* command :
       {"convert m.pt m.libtorch --to libtorch",
        "convert m.pt m.safetensors --all"}) {
    ASSERT_EQ(run(command), 0) << text("err.txt");
    EXPECT_THAT(
        text("out.txt"),
        HasSubstr("is not written; only its tensors and values are\n"))
        << command;
  }
  ASSERT_EQ(run("convert m.pt again.npz --json"), 0);
  EXPECT_THAT(text("out.txt"), HasSubstr(R"("warnings":["the TorchScript)"));
  ASSERT_EQ(run("convert new-pt plain.libtorch --to libtorch"), 0);
  EXPECT_THAT(text("out.txt"), testing::Not(HasSubstr("TorchScript")));
}

TEST_F(ConvertPlaces, OthersNameTheWayFromAProgramToItsWeights) {
  save_program(path("m.pt"));
  ASSERT_EQ(run("convert m.pt w.pt"), 0);
  for (const char* command :
       {"extract-model m.pt x.pt", "merge w.pt m.pt x.pt"}) {
    EXPECT_NE(run(command), 0);
    EXPECT_THAT(
        text("err.txt"),
        HasSubstr("'lockstep ckpt convert IN OUT --to pt'"))
        << command;
  }
}

} // namespace
} // namespace lockstep
