// SPDX-License-Identifier: BSD-3-Clause
//
// The commands that write, from the outside: what they leave on the disk.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"
#include "tests/cli/command_test.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EditCommands : public test::CommandTest {};

TEST_F(EditCommands, PrefixAndStripChangeTheFileItself) {
  put("tiny.pt", "m.pt");
  ASSERT_EQ(run("prefix m.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("m.pt"), ElementsAre("module.w"));
  ASSERT_EQ(run("strip m.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("m.pt"), ElementsAre("w"));
  EXPECT_EQ(run("verify --strict m.pt"), 0) << text("out.txt");
  EXPECT_EQ(run("strip m.pt"), 1);
}

TEST_F(EditCommands, StripNamesItsFlagForThePrefixThatIsLeft) {
  put("tiny.pt", "m.pt");
  ASSERT_EQ(run("prefix m.pt"), 0) << text("err.txt");
  ASSERT_EQ(run("prefix m.pt"), 0) << text("err.txt");
  ASSERT_EQ(run("strip m.pt"), 0) << text("err.txt");
  EXPECT_THAT(text("out.txt"), HasSubstr("strip it with --prefix module.\n"));
}

// Also through a link, whose name the archive does not take.
TEST_F(EditCommands, KeepsTheRootAndForeignRecordsOfTheFileItself) {
  const ckpt::ExtraRecord note{
      .name = "extra/notes.json",
      .content = ckpt::storage_of("{}", ckpt::DType::kUInt8)};
  const auto weights = ckpt::Value::dict(
      {{"w", ckpt::tensor_of<float>(ckpt::DType::kFloat32, {1}, {1})}});
  ASSERT_TRUE(ckpt::save(
      path("m.pt"),
      weights,
      {.archive_name = "root", .extra_records = {note}}));
  std::filesystem::create_symlink("m.pt", path("link.pt"));
  for (const char* command :
       {"rename m.pt s/w/v/", "prefix link.pt", "strip ./link.pt"}) {
    ASSERT_EQ(run(command), 0) << text("err.txt");
    const auto file = ckpt::load(path("m.pt")).value();
    EXPECT_EQ(file.archive_name, "root") << command;
    ASSERT_EQ(file.extra_records.size(), 1U) << command;
    EXPECT_EQ(file.extra_records[0].name, note.name);
    EXPECT_EQ(as_text(*file.extra_records[0].content->source->load()), "{}");
  }
  ASSERT_EQ(run("prefix m.pt -o new.pt"), 0) << text("err.txt");
  const auto file = ckpt::load(path("new.pt")).value();
  EXPECT_EQ(file.archive_name, "new");
  EXPECT_EQ(file.extra_records.size(), 1U);
  ASSERT_EQ(run("convert --dtype float16 m.pt m.pt --force"), 0)
      << text("err.txt");
  EXPECT_EQ(ckpt::load(path("m.pt")).value().extra_records.size(), 1U);
}

// Of edits at the same time, each is in the file or was refused.
TEST_F(EditCommands, NoEditIsLostToAnotherOne) {
  put("tiny.pt", "m.pt");
  constexpr std::string_view kProgram = LOCKSTEP_BINARY_DIR "/bin/lockstep";
  const std::string script = format(
      "cd '{}'; for i in 1 2 3 4 5 6 7 8; do ('{}' ckpt prefix m.pt --prefix "
      "p$i. >o$i 2>e$i; echo $? >s$i) & done; wait",
      path("."),
      kProgram);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  ASSERT_EQ(std::system(script.c_str()), 0);
  const std::string name = names("m.pt").front();
  for (int i = 1; i <= 8; ++i) {
    const std::string status = text(format("s{}", i));
    const bool is_there = name.find(format("p{}.", i)) != std::string::npos;
    EXPECT_EQ(status, is_there ? "0\n" : "4\n") << name;
    EXPECT_EQ(
        text(format("e{}", i)).find("(E_LOCKED)") == std::string::npos,
        is_there);
  }
}

TEST_F(EditCommands, AFileThatSomebodyChangesIsNotEdited) {
  put("tiny.pt", "m.pt");
  const auto lock = real_fs().open_update(path("m.pt")).value();
  for (const char* edit :
       {"prefix m.pt",
        "rename m.pt s/w/v/",
        "pick m.pt w --force -o m.pt",
        "convert m.pt m.pt --dtype float16 --force"}) {
    EXPECT_EQ(run(edit), 4) << edit;
    EXPECT_THAT(text("err.txt"), HasSubstr("(E_LOCKED)")) << edit;
  }
  EXPECT_EQ(run("prefix m.pt --dry-run"), 0) << text("err.txt");
  EXPECT_EQ(run("prefix m.pt -o new.pt"), 0) << text("err.txt");
  ASSERT_EQ(run("convert m.pt d --to dcp"), 0) << text("err.txt");
  const auto folder = ckpt::lock_for_edit(path("d")).value();
  EXPECT_EQ(run("prefix d"), 4);
  EXPECT_THAT(text("err.txt"), HasSubstr("(E_LOCKED)"));
  EXPECT_THAT(names("m.pt"), ElementsAre("w"));
}

TEST_F(EditCommands, WriteNewFilesAndGuardOldOnes) {
  put("tiny.pt", "m.pt");
  const std::string before = text("m.pt");
  ASSERT_EQ(run("prefix m.pt -o new.pt --prefix a."), 0) << text("err.txt");
  EXPECT_THAT(names("new.pt"), ElementsAre("a.w"));
  EXPECT_EQ(text("m.pt"), before);
  EXPECT_EQ(run("prefix m.pt -o new.pt"), 2);
  EXPECT_THAT(names("new.pt"), ElementsAre("a.w"));
  ASSERT_EQ(run("prefix m.pt -o new.pt --force"), 0);
  EXPECT_THAT(names("new.pt"), ElementsAre("module.w"));
  ASSERT_EQ(run("rename - 's/w/v/' -o piped.pt < m.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("piped.pt"), ElementsAre("v"));
  EXPECT_EQ(run("rename - 's/w/v/' < m.pt"), 2);
}

TEST_F(EditCommands, PickDropMergeAndMatch) {
  put("tiny.pt", "a.pt");
  ASSERT_EQ(run("rename a.pt s/w/v/ -o b.pt"), 0) << text("err.txt");
  ASSERT_EQ(run("merge a.pt b.pt both.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("both.pt"), ElementsAre("w", "v"));
  ASSERT_EQ(run("drop both.pt w"), 0) << text("err.txt");
  EXPECT_THAT(names("both.pt"), ElementsAre("v"));
  EXPECT_EQ(run("merge a.pt a.pt c.pt"), 2);
  EXPECT_FALSE(std::filesystem::exists(path("c.pt")));
  ASSERT_EQ(run("match b.pt a.pt -o c.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("c.pt"), ElementsAre("w"));
  ASSERT_EQ(run("merge a.pt b.pt both.pt --force"), 0);
  EXPECT_EQ(run("pick both.pt v"), 2); // the rest would be lost
  EXPECT_THAT(names("both.pt"), ElementsAre("w", "v"));
  ASSERT_EQ(run("pick both.pt v --force"), 0) << text("err.txt");
  EXPECT_THAT(names("both.pt"), ElementsAre("")); // the tensor alone
}

TEST_F(EditCommands, ConvertInPlaceIsSafe) {
  put("training.pth.tar", "m.pth.tar");
  ASSERT_EQ(run("convert --dtype bfloat16 m.pth.tar m.pth.tar --force"), 0)
      << text("err.txt");
  const auto file = ckpt::load(path("m.pth.tar")).value();
  std::size_t floats = 0;
  ckpt::for_each_tensor(
      file.root,
      [&floats](const std::string&, const ckpt::Tensor& tensor) {
        EXPECT_NE(tensor.dtype, ckpt::DType::kFloat32);
        floats += tensor.dtype == ckpt::DType::kBFloat16 ? 1 : 0;
      })
      .value();
  EXPECT_GT(floats, 4U);
}

TEST_F(EditCommands, ConvertTakesTheWeightsWhereThereIsNoPlaceForTheRest) {
  put("training.pth.tar", "m.pt");
  ASSERT_EQ(run("convert m.pt w.safetensors"), 0) << text("err.txt");
  EXPECT_EQ(
      text("out.txt"),
      "left out: epoch, arch, best_acc1, optimizer, scheduler; --all takes "
      "everything\nwrote w.safetensors: 9 tensors, 932 B (safetensors)\n");
  EXPECT_THAT(names("w.safetensors"), testing::Contains("0.weight"));
  ASSERT_EQ(run("convert m.pt all.safetensors --all"), 0) << text("err.txt");
  EXPECT_THAT(
      names("all.safetensors"),
      testing::Contains("state_dict.0.weight"));
  ASSERT_EQ(run("convert m.pt half.pt --dtype float16"), 0);
  EXPECT_THAT(text("out.txt"), testing::Not(HasSubstr("left out")));
  EXPECT_THAT(names("half.pt"), testing::Contains("state_dict.0.weight"));
}

TEST_F(EditCommands, MergeNamesTheFileThatHasNoWeights) {
  put("training.pth.tar", "m.pt");
  ASSERT_EQ(run("pick m.pt epoch -o epoch.pt"), 0) << text("err.txt");
  EXPECT_EQ(run("merge m.pt epoch.pt both.pt"), 3);
  EXPECT_THAT(text("err.txt"), HasSubstr("(epoch.pt)"));
}

TEST_F(EditCommands, MergeTakesTheRecordsOfBothFiles) {
  const auto save = [this](const char* name, const char* note) {
    const ckpt::ExtraRecord record{
        .name = note,
        .content = ckpt::storage_of(name, ckpt::DType::kUInt8)};
    return ckpt::save(
        path(name),
        ckpt::Value::dict({{name, ckpt::floats({1})}}),
        {.extra_records = {record}});
  };
  ASSERT_TRUE(save("a.pt", "notes.txt"));
  ASSERT_TRUE(save("b.pt", "more.txt"));
  ASSERT_TRUE(save("c.pt", "notes.txt"));
  const auto notes = [this] {
    std::string all;
    for (const auto& record :
         ckpt::load(path("out.pt")).value().extra_records) {
      all += record.name + "=";
      all += as_text(*record.content->source->load());
      all += " ";
    }
    return all;
  };
  ASSERT_EQ(run("merge a.pt b.pt out.pt"), 0) << text("err.txt");
  EXPECT_EQ(notes(), "notes.txt=a.pt more.txt=b.pt ");
  EXPECT_EQ(run("merge a.pt c.pt out.pt --force"), 2);
  EXPECT_THAT(text("err.txt"), HasSubstr("record 'notes.txt'"));
  EXPECT_THAT(text("err.txt"), HasSubstr("(c.pt)"));
  ASSERT_EQ(run("merge a.pt c.pt out.pt --force --replace"), 0);
  EXPECT_EQ(notes(), "notes.txt=c.pt ");

  ASSERT_EQ(run("convert b.pt b.npz"), 0) << text("err.txt");
  for (const char* command :
       {"convert a.pt a.npz", "merge b.npz c.pt c.npz"}) { // no place for them
    ASSERT_EQ(run(command), 0) << text("err.txt");
    EXPECT_THAT(text("out.txt"), HasSubstr("left out: record notes.txt; "));
    ASSERT_EQ(run(format("{} --force --json", command)), 0);
    EXPECT_THAT(text("out.txt"), HasSubstr(R"("left_out":["notes.txt"])"));
  }
}

TEST_F(EditCommands, ConvertWarnsThatThereIsNoTensor) {
  put("training.pth.tar", "m.pt");
  ASSERT_EQ(run("pick m.pt epoch -o epoch.pt"), 0) << text("err.txt");
  for (const char* out : {"e.safetensors", "e.pt"}) {
    EXPECT_EQ(run(format("convert epoch.pt {}", out)), 1) << text("err.txt");
    EXPECT_THAT(
        text("out.txt"),
        testing::StartsWith("warning: there is no tensor with bytes in it"));
    EXPECT_TRUE(ckpt::load(path(out)));
  }
  ASSERT_EQ(run("convert epoch.pt json.pt --json"), 1) << text("err.txt");
  EXPECT_THAT(
      text("out.txt"),
      HasSubstr(R"("warnings":["there is no tensor with bytes in it)"));
  EXPECT_EQ(run("convert epoch.pt e.npz"), 3); // NumPy would not open it
  EXPECT_THAT(text("err.txt"), HasSubstr("E_NOT_TENSOR"));
  EXPECT_FALSE(std::filesystem::exists(path("e.npz")));
}

TEST_F(EditCommands, SayWhatHelps) {
  put("training.pth.tar", "m.pt");
  struct Row {
    const char* args;
    const char* hint;
  };
  for (const auto& [args, hint] :
       {Row{"convert m.pt m.npz --all", "without --all only the weights"},
        Row{"pick m.pt state_dic -o p.pt", "did you mean 'state_dict'?"},
        Row{"pick m.pt epoch optimizr -o p.pt", "did you mean 'optimizer'?"},
        Row{"drop m.pt 0.weigth -o p.pt",
            "did you mean 'state_dict.0.weight'?"},
        Row{"drop m.pt '' -o p.pt", "list the names"},
        Row{"rename m.pt 's/.*//' -o p.pt", "leave a part of the name"}}) {
    EXPECT_NE(run(args), 0) << args;
    EXPECT_THAT(text("err.txt"), HasSubstr(hint)) << args;
  }
  ASSERT_EQ(run("pick m.pt epoch -o e.pt"), 0) << text("err.txt");
  EXPECT_THAT(
      text("out.txt"),
      HasSubstr("the file is 'epoch' itself, without a name"));
}

TEST_F(EditCommands, ReadFilesOfAByteOrderThatTheyDoNotSay) {
  ckpt::Pickle pickle;
  pickle.global("torch._utils", "_rebuild_tensor_v2").mark();
  pickle.storage("FloatStorage", "0", 1).int4(0).ints({1}).ints({1});
  pickle.op(0x89).hooks().op('t').op('R').stop();
  ckpt::ZipBytes zip;
  zip.add("a/data.pkl", pickle.bytes());
  zip.add("a/data/0", std::string("\x3f\x80\0\0", 4)); // 1.0
  zip.add("a/version", "3\n");
  ASSERT_TRUE(
      write_file_atomically(real_fs(), path("old.pt"), zip.finish(), {}));
  const auto order = [this](const char* name) {
    return ckpt::load(path(name)).value().byteorder;
  };
  ASSERT_EQ(run("convert old.pt kept.pt --dtype float16"), 0);
  EXPECT_EQ(order("kept.pt"), "");
  ASSERT_EQ(run("convert old.pt kept.npz --to npz"), 0);
  ASSERT_EQ(run("convert kept.npz known.pt"), 0);
  EXPECT_EQ(order("known.pt"), "little");
  ASSERT_EQ(run("convert --byteorder big old.pt new.pt"), 0) << text("err.txt");
  EXPECT_EQ(order("new.pt"), "little");
  ASSERT_EQ(run("show new.pt"), 0);
  EXPECT_THAT(text("out.txt"), HasSubstr("head       1.0\n"));
  EXPECT_EQ(run("diff --byteorder big old.pt new.pt"), 0) << text("out.txt");
  EXPECT_EQ(run("diff old.pt new.pt"), 1);
  EXPECT_EQ(run("show --byteorder middle new.pt"), 2);
}

TEST_F(EditCommands, AppendingLeavesOtherNamesOfTheFileAlone) {
  put("tiny.pt", "m.pt");
  std::filesystem::create_hard_link(path("m.pt"), path("best.pt"));
  ASSERT_EQ(run("prefix m.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("m.pt"), ElementsAre("module.w"));
  EXPECT_THAT(names("best.pt"), ElementsAre("w"));
}

TEST_F(EditCommands, StandardInputIsReadByAll) {
  put("training.pth.tar", "m.pt");
  for (const char* args :
       {"convert - c.npz",
        "optim - o.pt --to cpp",
        "merge - m.pt b.pt --replace",
        "match - m.pt -o p.pt",
        "repair - r.pt",
        "drop - optimizer -o d.pt",
        "pick - state_dict -o s.pt",
        "diff - m.pt",
        "inspect -",
        "tree -",
        "show - epoch"}) {
    EXPECT_EQ(run(format("{} < m.pt", args)), 0) << args << text("err.txt");
  }
  EXPECT_EQ(run("diff - - < m.pt"), 2);
  EXPECT_THAT(text("err.txt"), HasSubstr("named twice"));
}

TEST_F(EditCommands, ReadersSayWhatWasReadWithAWarning) {
  put("tiny.pt", "m.pt");
  ASSERT_EQ(shell("printf junk >>m.pt"), 0);
  for (const char* command :
       {"ls m.pt", "ls --names m.pt", "tree m.pt", "digest m.pt"}) {
    EXPECT_EQ(run(command), 0);
    EXPECT_THAT(text("err.txt"), HasSubstr("warning: W_TRAILING: "));
    EXPECT_EQ(run(format("{} --json", command)), 0);
    EXPECT_THAT(text("out.txt"), HasSubstr("\"warnings\":[\"W_TRAILING"));
    EXPECT_EQ(text("err.txt"), "");
  }
  put("tiny.pt", "good.pt");
  for (const char* command : {"digest good.pt m.pt", "diff good.pt m.pt"}) {
    EXPECT_EQ(run(command), 0);
    EXPECT_THAT(text("err.txt"), HasSubstr("warning: m.pt: W_TRAILING: "));
    EXPECT_EQ(run(format("{} --json", command)), 0);
    EXPECT_THAT(text("out.txt"), HasSubstr("\"warnings\":[\"m.pt: W_TRAI"));
  }
  EXPECT_EQ(run("show m.pt --json"), 0);
  EXPECT_THAT(text("err.txt"), HasSubstr("warning: W_TRAILING: "));
}

TEST_F(EditCommands, NumpysNumbersBecomePythons) {
  put("numpy_numbers.pt", "m.pt");
  EXPECT_EQ(run("scan m.pt"), 0);
  EXPECT_EQ(run("show m.pt best_acc1"), 0);
  EXPECT_EQ(text("out.txt"), "87.25\n");
  EXPECT_EQ(run("strip m.pt"), 0) << text("err.txt");
  EXPECT_THAT(
      text("err.txt"),
      HasSubstr("warning: NumPy's numbers of the file"));
  EXPECT_EQ(run("m.pt"), 0);
  EXPECT_THAT(text("out.txt"), HasSubstr("names, all safe"));
  EXPECT_EQ(run("strip --prefix module m.pt"), 1);
  EXPECT_EQ(text("err.txt").find("NumPy"), std::string::npos);
  put("numpy_numbers.pt", "n.pt");
  EXPECT_EQ(run("convert n.pt n.safetensors"), 0);
  EXPECT_EQ(text("err.txt"), "") << "no number in it";
}

TEST_F(EditCommands, TorchScriptArchivesHaveASummary) {
  put("tiny.pt", "m.pt");
  ASSERT_EQ(run("convert --to libtorch m.pt s.pt"), 0) << text("err.txt");
  EXPECT_EQ(run("s.pt"), 0) << text("err.txt");
  EXPECT_THAT(
      text("out.txt"),
      testing::AllOf(
          HasSubstr("PyTorch TorchScript archive"),
          HasSubstr("all known to TorchScript")));
}

} // namespace
} // namespace lockstep
