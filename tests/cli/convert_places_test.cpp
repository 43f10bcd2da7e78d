// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep ckpt convert` says of what a format has no place for.
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/cli/command_test.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

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

} // namespace
} // namespace lockstep
