// SPDX-License-Identifier: BSD-3-Clause
//
// Files between Python and us, both ways.
#include "lockstep/tensor/checkpoint.h"

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

using test::error_of;
using test::Net;
using test::Wrapper;

constexpr const char* kAllMatched = "<All keys matched successfully>";

// Files that Python wrote, made once for all tests.
class PythonFiles : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<test::ScratchDir>();
    cuda_text = test::run_python("tensor_files.py", {"write", folder->path()});
  }
  static void TearDownTestSuite() {
    folder.reset();
  }
  static std::string path(const std::string& name) {
    return *folder / name;
  }
  static void expect_filled(const Net& net) {
    EXPECT_TRUE(test::equal(
        state_dict(net),
        state_dict(*test::fill(std::make_shared<Net>()))));
  }

  static inline std::unique_ptr<test::ScratchDir> folder;
  static inline std::string cuda_text;
};

TEST_F(PythonFiles, OfWeightsLoadStrictly) {
  for (const char* name : {"net.pt", "plain.pt"}) {
    Net net;
    const Checkpoint file = load(path(name));
    EXPECT_EQ(to_string(load_state_dict(net, file)), kAllMatched);
    expect_filled(net);
  }
}

TEST_F(PythonFiles, OfAWrapperLoadWrappedOrStripped) {
  const Checkpoint file = load(path("wrapped.pt"));
  const auto inner = std::make_shared<Net>();
  Wrapper wrapped(inner);
  EXPECT_EQ(to_string(load_state_dict(wrapped, file)), kAllMatched);
  expect_filled(*inner);
  Net bare;
  EXPECT_EQ(
      to_string(load_state_dict(bare, file, {.strip_prefix = "module."})),
      kAllMatched);
  expect_filled(bare);
}

TEST_F(PythonFiles, CarryTheVersionsOfModules) {
  EXPECT_EQ(
      to_state_dict(load(path("net.pt"))).versions,
      state_dict(Net()).versions);
  EXPECT_TRUE(to_state_dict(load(path("plain.pt"))).versions.empty());
}

TEST_F(PythonFiles, OfAWholeRunOpenByKey) {
  const Checkpoint file =
      load(path("checkpoint.pth.tar"), {.map_location = "cpu"});
  EXPECT_EQ(*file["epoch"].as_int(), 3);
  EXPECT_FALSE(file.contains("optimizer"));
  Net net;
  (void)load_state_dict(net, file["state_dict"]);
  expect_filled(net);
  const Error error = error_of([&] { (void)file["state_dicts"]; });
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.message, "the file has no key 'state_dicts'");
  EXPECT_EQ(error.hint, "did you mean 'state_dict'?");
  EXPECT_EQ(error.path, path("checkpoint.pth.tar"));
}

TEST_F(PythonFiles, KeepViewsAndDtypes) {
  const Checkpoint file = load(path("views.pt"));
  TensorReader reader;
  const at::Tensor whole = reader.tensor(*file["whole"].as_tensor());
  const at::Tensor view = reader.tensor(*file["view"].as_tensor());
  EXPECT_TRUE(view.is_alias_of(whole));
  EXPECT_TRUE(torch::equal(view, whole.t().slice(0, 1, 3)));
  EXPECT_EQ(
      reader.tensor(*file["half"].as_tensor()).scalar_type(),
      torch::kBFloat16);
}

TEST_F(PythonFiles, StayUnchangedWhenATensorIsWritten) {
  at::Tensor tensor = to_tensor(*load(path("views.pt"))["whole"].as_tensor());
  tensor.fill_(-1);
  const at::Tensor again =
      to_tensor(*load(path("views.pt"))["whole"].as_tensor());
  EXPECT_EQ(again.sum().item<float>(), 66.0F);
}

TEST_F(PythonFiles, FromAGpuNeedAMapLocation) {
  if (torch::cuda::device_count() > 1) {
    return; // then cuda:1 is here
  }
  const Error error = error_of([] { (void)load(path("cuda.pt")); });
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.message + "\n", cuda_text);
  test::MyModule net;
  EXPECT_EQ(
      to_string(
          load_state_dict(net, load(path("cuda.pt"), {.map_location = "cpu"}))),
      kAllMatched);
}

TEST_F(PythonFiles, TellWhereTheirWeightsAre) {
  const Checkpoint run = load(path("checkpoint.pth.tar"));
  const FoundWeights found = find_state_dict(run);
  EXPECT_EQ(found.key, "state_dict");
  EXPECT_EQ(found.weights.address(), run["state_dict"].address());
  const Checkpoint bare = load(path("net.pt"));
  EXPECT_EQ(find_state_dict(bare).key, "");
  const Checkpoint list = load(path("list.pt"));
  EXPECT_EQ(
      error_of([&] { (void)find_state_dict(list); }).message,
      "no weights found: expected a dict of tensors or a model, or one under "
      "'state_dict' or 'model'; it holds a list, no dict");
}

TEST(FindStateDict, TakesModelAndRefusesOtherKeys) {
  const ckpt::Value weights = to_value(state_dict(test::MyModule()));
  EXPECT_EQ(
      find_state_dict(ckpt::Value::dict({{"epoch", 1}, {"model", weights}}))
          .key,
      "model");
  const auto other = ckpt::Value::dict({{"epoch", 1}, {"model", 3}});
  const Error error = error_of([&] { (void)find_state_dict(other); });
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, testing::HasSubstr("its keys are epoch, model"));
}

// What an optimizer keeps for each parameter has their names and shapes.
TEST(FindStateDict, StatesOfOptimizersAreNoWeights) {
  const ckpt::Value tensors = to_value(state_dict(test::MyModule()));
  for (const char* key :
       {"exp_avg",
        "exp_avg_sq",
        "max_exp_avg_sq",
        "exp_inf",
        "momentum_buffer",
        "square_avg",
        "grad_avg",
        "acc_delta",
        "sum",
        "optimizer",
        "optimizer_state",
        "optim",
        "optim_state",
        "grads",
        "gradients",
        "grad"}) {
    SCOPED_TRACE(key);
    const Error error = error_of([&] {
      (void)find_state_dict(ckpt::Value::dict({{"epoch", 1}, {key, tensors}}));
    });
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_THAT(error.message, testing::HasSubstr("no weights found"));
    EXPECT_EQ(
        find_state_dict(
            ckpt::Value::dict({{"generator", tensors}, {key, tensors}}))
            .key,
        "generator");
  }
}

TEST(OurFiles, LoadStrictlyInPython) {
  const test::ScratchDir dir;
  const auto net = test::fill(std::make_shared<Net>());
  const StateDict weights = state_dict(*net);
  save(weights, dir / "net.pt");
  save(state_dict(Wrapper(net)), dir / "wrapped.pt");
  const at::Tensor base = torch::arange(6).reshape({2, 3});
  save(
      {{"epoch", 4},
       {"lr", 0.25},
       {"name", "net"},
       {"state_dict", weights},
       {"alias", net->scale.detach()},
       {"view", base.t()}},
      dir / "checkpoint.pth.tar");
  EXPECT_EQ(
      test::run_python("tensor_files.py", {"read", dir.path()}),
      "<All keys matched successfully>\n"
      "True\n"
      "True OrderedDict\n"
      "<All keys matched successfully>\n"
      "['epoch', 'lr', 'name', 'state_dict', 'alias', 'view'] 4 0.25 net\n"
      "<All keys matched successfully>\n"
      "True\n"
      "[[0, 3], [1, 4], [2, 5]] (1, 3)\n");
}

TEST(OurFiles, LoadBackEqual) {
  const test::ScratchDir dir;
  const auto net = test::fill(std::make_shared<Net>());
  save({{"state_dict", state_dict(*net)}}, dir / "a.pt");
  Net copy;
  (void)load_state_dict(copy, load(dir / "a.pt")["state_dict"]);
  EXPECT_TRUE(test::equal(state_dict(copy), state_dict(*net)));
}

TEST(Load, ReadsAFileOfTheOtherByteOrderThatDoesNotSaySo) {
  const test::ScratchDir dir;
  ckpt::Pickle pickle;
  pickle.global("torch._utils", "_rebuild_tensor_v2").mark();
  pickle.storage("FloatStorage", "0", 1).int4(0).ints({1}).ints({1});
  pickle.op(0x89).hooks().op('t').op('R').stop();
  ckpt::ZipBytes zip;
  zip.add("a/data.pkl", pickle.bytes());
  zip.add("a/data/0", std::string("\x3f\x80\0\0", 4));
  zip.add("a/version", "3\n");
  write_file_atomically(real_fs(), dir / "a.pt", zip.finish()).value();
  const Checkpoint file = load(dir / "a.pt", {.byteorder = std::endian::big});
  EXPECT_EQ(to_tensor(*file.as_tensor()).item<float>(), 1.0F);
}

TEST(Load, NamesAFileThatIsNotThere) {
  const Error error = error_of([] { (void)load("nothing/here.pt"); });
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
}

} // namespace
} // namespace lockstep
