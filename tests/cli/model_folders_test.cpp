// SPDX-License-Identifier: BSD-3-Clause
//
// Models of several files: commands read all of them by the index, or say that
// one file is a part.
#include <fstream>

#include <gmock/gmock.h>

#include "tests/ckpt/value_fixture.h"
#include "tests/cli/command_test.h"
#include "tests/support/sanitizer.h"

namespace lockstep {
namespace {

using ckpt::Value;
using testing::HasSubstr;
using testing::Not;

class ModelFolders : public test::CommandTest {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  // As transformers writes a large model: two shards and an index.
  void put_bin() const {
    ASSERT_EQ(shell("mkdir bin"), 0);
    const std::string front = "bin/pytorch_model-0000";
    ASSERT_TRUE(ckpt::save(
        path(front + "1-of-00002.bin"),
        Value::dict({{"a.weight", ckpt::floats({1, 2})}})));
    ASSERT_TRUE(ckpt::save(
        path(front + "2-of-00002.bin"),
        Value::dict({{"b.weight", ckpt::floats({3})}})));
    write(
        "bin/pytorch_model.bin.index.json",
        R"({"weight_map": {"a.weight": "pytorch_model-00001-of-00002.bin",)"
        R"( "b.weight": "pytorch_model-00002-of-00002.bin"}})");
  }
  // As two ranks of torch.distributed.checkpoint write: `w` is cut into rows.
  void put_pieces() const {
    ASSERT_EQ(shell("mkdir dist"), 0);
    write("dist/" + shard(1), piece("[0, 0]", "[2,1]", "ab"));
    write("dist/" + shard(2), piece("[2, 0]", "[1,1]", "c"));
  }
  static std::string shard(int number) {
    return format("shard-0000{}-model-00001-of-00001.safetensors", number);
  }

 private:
  static std::string piece(
      const std::string& offsets,
      const std::string& shape,
      const std::string& data) {
    const std::string header = format(
        R"({{"__metadata__":{{"DCP_SHARDING_INFO":"{{\"w\": )"
        R"({{\"saved_offsets\": {}}}}}"}},"w":{{"dtype":"U8","shape":{},)"
        R"("data_offsets":[0,{}]}}}})",
        offsets,
        shape,
        data.size());
    std::string bytes;
    for (int i = 0; i < 8; ++i) {
      bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
    }
    return bytes + header + data;
  }
};

// Commands and what they must print of a folder, and of its index.
struct Command {
  const char* args;
  const char* says;
};

TEST_F(ModelFolders, AreReadByTheirIndexByEveryCommand) {
  put_bin();
  const std::vector<Command> commands{
      {"inspect IN", "2 tensors"},
      {"IN", "2 tensors"},
      {"ls IN", "b.weight"},
      {"tree IN", "b"},
      {"show IN b.weight", "3"},
      {"digest IN", ""},
      {"verify IN", "sound"},
      {"convert IN out.safetensors --force", "2 tensors"},
      {"diff IN IN", "equal: 2 tensors"},
  };
  for (const char* input : {"bin", "bin/pytorch_model.bin.index.json"}) {
    for (const Command& command : commands) {
      std::string args = command.args;
      for (std::size_t at = args.find("IN"); at != std::string::npos;
           at = args.find("IN", at)) {
        args.replace(at, 2, input);
      }
      SCOPED_TRACE(args);
      EXPECT_EQ(run(args), 0) << text("err.txt");
      EXPECT_THAT(text("out.txt"), HasSubstr(command.says));
    }
  }
}

TEST_F(ModelFolders, OneFileOfAnIndexIsNamedAsAPart) {
  put_bin();
  ASSERT_EQ(run("ls bin/pytorch_model-00001-of-00002.bin"), 0);
  EXPECT_THAT(
      text("err.txt"),
      HasSubstr("one of the 2 files of 'pytorch_model.bin.index.json'"));
}

TEST_F(ModelFolders, PiecesOfTensorsAreNamedAndPutTogether) {
  put_pieces();
  for (const char* args :
       {"ls IN",
        "show IN w",
        "inspect IN",
        "convert IN o.pt --force",
        "diff IN IN"}) {
    std::string command = args;
    for (std::size_t at = command.find("IN"); at != std::string::npos;
         at = command.find("IN", at)) {
      command.replace(at, 2, "dist/" + shard(1));
    }
    SCOPED_TRACE(command);
    EXPECT_EQ(run(command), 0) << text("err.txt");
    EXPECT_THAT(
        text("out.txt") + text("err.txt"),
        HasSubstr("'w' is rows 0..2 of 3"));
  }
  ASSERT_EQ(run("ls dist"), 0) << text("err.txt");
  EXPECT_THAT(text("out.txt"), HasSubstr("[3, 1]"));
  EXPECT_EQ(text("err.txt"), "");
  ASSERT_EQ(run("convert dist whole.npz"), 0) << text("err.txt");
  EXPECT_EQ(names("whole.npz"), std::vector<std::string>{"w"});
}

TEST_F(ModelFolders, WithoutAnIndexTheHintIsTheIndex) {
  put_bin();
  ASSERT_EQ(shell("rm bin/*.json"), 0);
  EXPECT_EQ(run("ls bin"), 3);
  EXPECT_THAT(text("err.txt"), HasSubstr(".index.json"));
  EXPECT_THAT(text("err.txt"), Not(HasSubstr("00001-of-00002.bin")));
}

// Somebody may cut a file while a command reads it: nothing is mapped, so that
// this is an error and no signal. A file larger than the addresses shows it.
TEST_F(ModelFolders, ConvertMapsNothing) {
  if (test::kIsSanitized) {
    GTEST_SKIP() << "the sanitizer needs the addresses";
  }
  ASSERT_TRUE(ckpt::save(
      path("a.npz"),
      Value::dict({{"w", ckpt::floats({1, 2})}}),
      {.format = "npz"}));
  ASSERT_EQ(shell("unzip -q a.npz && truncate -s 4G w.npy"), 0);
  EXPECT_EQ(
      shell(format(
          "ulimit -v 1000000; '{}' ckpt convert w.npy w.pt >out.txt 2>err.txt",
          test::kProgram)),
      0)
      << text("err.txt");
}

} // namespace
} // namespace lockstep
