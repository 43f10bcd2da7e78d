// SPDX-License-Identifier: BSD-3-Clause
//
// PyTorch is the judge: it reads what we write, and what it wrote comes out
// of our load and save byte by byte.
#include <filesystem>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/oracle_support.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

// Offset of the first difference; the length if there is none.
std::size_t first_difference(const std::string& a, const std::string& b) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) {
    ++at;
  }
  return at;
}

class ResavedFilesOracle : public testing::TestWithParam<bool> {};

TEST_P(ResavedFilesOracle, EqualPyTorchByteByByte) {
  const test::ScratchDir python;
  const test::ScratchDir ours;
  const auto cases = test::python_lines("ckpt_cases.py", {python.path()});
  ASSERT_GE(cases.size(), 30U);
  for (const std::string& name : cases) {
    const auto file = load(python / (name + ".pt"), {.use_mmap = GetParam()});
    ASSERT_TRUE(file) << name << ": " << to_string(file.error());
    const Status status = save(ours / (name + ".pt"), file->root);
    ASSERT_TRUE(status) << name << ": " << to_string(status.error());
    const auto wanted = read_text(real_fs(), python / (name + ".pt"));
    const auto got = read_text(real_fs(), ours / (name + ".pt"));
    ASSERT_TRUE(wanted && got);
    EXPECT_TRUE(*wanted == *got)
        << name << ": sizes " << wanted->size() << " and " << got->size()
        << ", first difference at " << first_difference(*wanted, *got);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Both,
    ResavedFilesOracle,
    testing::Bool(),
    test::mode_name);

Value handmade() {
  const Tensor base =
      tensor_of<float>(DType::kFloat32, {1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor column = base;
  column.sizes = {2};
  column.strides = {3};
  column.offset = 1;
  Tensor parameter = tensor_of<std::int64_t>(DType::kInt64, {7}, {});
  parameter.is_parameter = true;
  Value weights = Value::ordered_dict({{"base", base}, {"column", column}});
  weights.as_dict()->attributes.emplace_back("_metadata", Value::dict({}));
  return Value::dict(
      {{"epoch", 3},
       {"state_dict", weights},
       {"p", parameter},
       {"half", tensor_of<std::uint16_t>(DType::kUInt16, {1, 2}, {2})},
       {"empty", tensor_of<float>(DType::kFloat32, {}, {0, 3})},
       {"name", Bytes{""}},
       {"where", Device{"cuda", 0}},
       {"list", Value::list({Value::tuple({1, 2.5, "x"}), Size{{2, 3}}})}});
}

TEST(HandmadeFilesOracle, AreReadByPyTorchsSafeLoader) {
  const test::ScratchDir dir;
  const std::string path = dir / "checkpoint.pth.tar";
  ASSERT_TRUE(save(path, handmade()));
  const std::string text = test::run_python("ckpt_check.py", {path});
  EXPECT_EQ(
      text,
      "dict{'epoch': 3, 'state_dict': OrderedDict{"
      "'base': Tensor(torch.float32, (2, 3), (3, 1), False, "
      "0000803f000000400000404000008040"
      "0000a0400000c040), "
      "'column': Tensor(torch.float32, (2,), (3,), False, "
      "000000400000a040)}dict{'_metadata': dict{}}, "
      "'p': Parameter(torch.int64, (), (), False, 0700000000000000), "
      "'half': Tensor(torch.uint16, (2,), (1,), False, 01000200), "
      "'empty': Tensor(torch.float32, (0, 3), (3, 1), False, ), "
      "'name': b'', 'where': device(type='cuda', index=0), "
      "'list': list(tuple(1, 2.5, 'x'), Size(2, 3))}\n");
}

TEST(HandmadeFilesOracle, KeepEveryValueThroughOurOwnReader) {
  const test::ScratchDir dir;
  const std::string first = dir / "a/m.pt";
  const std::string second = dir / "b/m.pt";
  std::filesystem::create_directories(dir / "a");
  std::filesystem::create_directories(dir / "b");
  ASSERT_TRUE(save(first, handmade()));
  const auto file = load(first);
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_TRUE(save(second, file->root));
  EXPECT_EQ(*read_text(real_fs(), first), *read_text(real_fs(), second));
}

} // namespace
} // namespace lockstep::ckpt
