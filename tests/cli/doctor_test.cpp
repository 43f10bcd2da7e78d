// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep doctor`: what it says of this machine, and of others whose files
// are put in a folder.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/internal/descriptor.h"
#include "lockstep/base/strings.h"
#include "tests/cli/program.h"
#include "tests/support/json_schema.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

// The variables of whoever runs the tests.
constexpr const char* kClean =
    "unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_PORT "
    "OMP_NUM_THREADS GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME; ";

class Doctor : public testing::Test {
 protected:
  Doctor() {
    // A copy has no lockstep-train beside it but that of a test.
    fs::create_directory(dir_ / "bin");
    fs::copy_file(test::kProgram, dir_ / "bin/lockstep");
  }
  void put(const std::string& name, const std::string& text) {
    const fs::path path = dir_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void put_train_program(const std::string& script) {
    put("bin/lockstep-train", "#!/bin/sh\n" + script);
    fs::permissions(dir_ / "bin/lockstep-train", fs::perms::owner_all);
  }
  /// `before`: commands of the shell in front of it.
  test::ShellOutcome run(
      const std::string& args,
      const std::string& before = "") {
    return test::run_shell(format(
        "{}cd '{}'; {} PATH=/usr/bin:/bin bin/lockstep doctor {}",
        kClean,
        dir_.path(),
        before,
        args));
  }
  /// The finding with this name; `status` is the command's.
  json find(
      const std::string& name,
      const std::string& before = "",
      const std::string& args = "",
      int status = 0) {
    const auto outcome = run("--json " + args, before);
    EXPECT_EQ(outcome.status, status) << outcome.out << outcome.err;
    const json answer = json::parse(outcome.out);
    EXPECT_EQ(test::violation_of_its_schema(answer), "");
    for (const json& row : answer["result"]["findings"]) {
      if (row["name"] == name) {
        return row;
      }
    }
    return {{"health", "none"}, {"value", ""}, {"remedy", ""}};
  }
  const test::ScratchDir dir_;
};

TEST_F(Doctor, SaysWhatThisMachineHas) {
  const auto outcome = run("");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  for (const char* word :
       {"lockstep\n",
        "libtorch\n",
        "processor\n",
        "memory\n",
        "disk\n",
        "network\n",
        "launch\n",
        " cores ",
        " fsync "}) {
    EXPECT_THAT(outcome.out, HasSubstr(word));
  }
  EXPECT_THAT(find("lockstep-train")["remedy"], HasSubstr("with LibTorch"));
}

TEST_F(Doctor, KnowsAProcessorWithoutAvx2) {
  put("old/proc/cpuinfo", "model name\t: Old One\nflags\t\t: fpu sse2\n");
  EXPECT_EQ(find("model", "", "--root old")["value"], "Old One");
  const json vectors = find("vectors", "", "--root old");
  EXPECT_EQ(vectors["health"], "note");
  EXPECT_THAT(vectors["remedy"], HasSubstr("--kernels torch"));
}

TEST_F(Doctor, KnowsTheShareOfAContainer) {
  put("box/proc/self/cgroup", "0::/outer/inner\n");
  put("box/proc/meminfo",
      "MemTotal:       16000000 kB\nMemAvailable:   12000000 kB\n");
  put("box/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  put("box/sys/fs/cgroup/outer/cpu.max", "50000 100000\n");
  put("box/sys/fs/cgroup/outer/inner/memory.max", "2147483648\n");
  const json cores = find("cores", "", "--root box");
  EXPECT_EQ(cores["health"], "warning");
  EXPECT_THAT(cores["value"], HasSubstr("the time of 0.5"));
  EXPECT_THAT(cores["remedy"], HasSubstr("--threads 1"));
  EXPECT_EQ(
      find("cores", "export OMP_NUM_THREADS=1;", "--root box")["health"],
      "ok");
  const json limit = find("limit", "", "--root box");
  EXPECT_THAT(limit["value"], HasSubstr("2.0 GiB"));
  EXPECT_EQ(find("limit")["health"] == "problem", false);
}

TEST_F(Doctor, KnowsWhatIsLeftOfAnotherLaunch) {
  const json ranks = find("ranks", "export RANK=1;", "", 1);
  EXPECT_EQ(ranks["health"], "problem");
  EXPECT_THAT(ranks["value"], HasSubstr("WORLD_SIZE"));
  EXPECT_NE(ranks["remedy"], "");
  EXPECT_EQ(
      find("ranks", "export RANK=1 WORLD_SIZE=2 LOCAL_RANK=1;")["value"],
      "rank 1 of 2");
  EXPECT_EQ(find("port", "export MASTER_PORT=x;", "", 1)["health"], "problem");
  const json missing =
      find("GLOO_SOCKET_IFNAME", "export GLOO_SOCKET_IFNAME=nope7;", "", 1);
  EXPECT_EQ(missing["health"], "problem");
  EXPECT_THAT(missing["value"], HasSubstr("'nope7'"));
}

TEST_F(Doctor, KnowsAPortThatIsTaken) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): as ip(7) has it
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  ASSERT_EQ(::bind(socket.get(), generic, size), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::getsockname(socket.get(), generic, &size), 0);
  const json port =
      find("port", format("export MASTER_PORT={};", ntohs(address.sin_port)));
  EXPECT_EQ(port["health"], "note");
  EXPECT_THAT(port["value"], HasSubstr("is taken"));
}

TEST_F(Doctor, KnowsAFolderThatTakesNoFiles) {
  const json missing = find("writing", "", "not-there", 1);
  EXPECT_EQ(missing["health"], "problem");
  EXPECT_THAT(missing["value"], HasSubstr("not-there"));
  EXPECT_THAT(missing["remedy"], HasSubstr("--output"));
  fs::create_directory(dir_ / "runs");
  EXPECT_THAT(find("fsync", "", "runs")["value"], HasSubstr("ms for 4 MiB"));
  EXPECT_TRUE(fs::is_empty(dir_ / "runs")) << "nothing is left there";
}

TEST_F(Doctor, TakesOverWhatTheTrainProgramFinds) {
  put_train_program(
      R"(echo 'a library says hello' >&2
echo '{"findings":[{"group":"libtorch","name":"build","value":"CUDA",)"
      R"("health":"ok","remedy":""}]}')");
  EXPECT_EQ(find("build")["value"], "CUDA");
  put("gpu/proc/driver/nvidia/version", "NVRM version: NVIDIA 570.1\n");
  const json driver = find("NVIDIA driver", "", "--root gpu");
  EXPECT_EQ(driver["health"], "warning") << "it shows no GPU";
}

TEST_F(Doctor, SaysWhyTheTrainProgramDoesNotStart) {
  put_train_program(
      "echo \"$0: error while loading shared libraries: libtorch_cpu.so: "
      "cannot open shared object file\" >&2; exit 127\n");
  const json loader = find("start", "", "", 1);
  EXPECT_THAT(loader["value"], HasSubstr("libtorch_cpu.so"));
  EXPECT_THAT(loader["remedy"], HasSubstr("LD_LIBRARY_PATH"));
  put_train_program("kill -ILL $$\n");
  const json illegal = find("start", "", "", 1);
  EXPECT_THAT(illegal["value"], HasSubstr("died of signal 4"));
  EXPECT_THAT(illegal["remedy"], HasSubstr("another processor"));
  put_train_program("echo '{\"findings\": 5'\n");
  EXPECT_EQ(find("start", "", "", 1)["health"], "problem");
}

} // namespace
} // namespace lockstep
