// SPDX-License-Identifier: BSD-3-Clause
//
// NumPy is the judge: it reads what we write, and what it wrote we read.
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/logical_bytes.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

// Lines as ckpt_numpy.py prints them.
std::string describe_file(
    const std::string& folder,
    const std::string& name,
    bool use_mmap) {
  const auto file = load(folder + "/" + name, {.use_mmap = use_mmap});
  if (!file) {
    return to_string(file.error());
  }
  std::string text;
  const Status status = for_each_tensor(
      file->root,
      [&](const std::string& key, const Tensor& tensor) {
        text += name + " " + (key.empty() ? "-" : key) + " ";
        text += dtype_info(tensor.dtype).name;
        for (const std::int64_t size : tensor.sizes) {
          text += " " + std::to_string(size);
        }
        const auto crc = logical_crc(tensor);
        text += " " + (crc ? std::to_string(*crc) : to_string(crc.error()));
        text += "\n";
      });
  return status ? text : to_string(status.error());
}

TEST(NumpyOracle, ItsArraysComeOutOfOurReader) {
  const test::ScratchDir dir;
  const std::string wanted =
      test::run_python("ckpt_numpy.py", {"make", dir.path()});
  for (const bool use_mmap : {true, false}) {
    std::string got;
    for (const char* name :
         {"packed.npz",
          "stored.npz",
          "fortran.npy",
          "scalar.npy",
          "big.npy",
          "empty.npy",
          "v2.npy"}) {
      got += describe_file(dir.path(), name, use_mmap);
    }
    EXPECT_EQ(got, wanted);
  }
}

TEST(NumpyOracle, ScanTellsObjectsFromOtherTypes) {
  const test::ScratchDir dir;
  const auto lines =
      test::python_lines("ckpt_numpy.py", {"others", dir.path()});
  EXPECT_EQ(lines.size(), 34U);
  for (const std::string& line : lines) {
    const auto parts = split(line, ' ');
    const auto reports =
        scan_path(dir / (parts[0] + (parts[0] == "all" ? ".npz" : ".npy")));
    ASSERT_TRUE(reports) << line;
    const ScanReport& report = reports->front();
    const bool has_objects = parts[1] == "True";
    EXPECT_EQ(report.verdict, has_objects ? Verdict::kFound : Verdict::kClean)
        << line;
    EXPECT_EQ(report.pickles, has_objects ? 1U : 0U) << line;
    EXPECT_TRUE(report.notes.empty()) << line;
  }
}

TEST(NumpyOracle, ReadsOurArchives) {
  const test::ScratchDir dir;
  Tensor turned = tensor_of<float>(DType::kFloat32, {1, 2, 3, 4}, {2, 2});
  turned.strides = {1, 2};
  const Value tree = Value::dict(
      {{"m", Value::dict({{"w", turned}})},
       {"half", tensor_of<std::uint16_t>(DType::kBFloat16, {0x3f80}, {1})},
       {"f8", tensor_of<std::uint8_t>(DType::kFloat8E5M2, {1, 2}, {2})},
       {"flag", tensor_of<std::uint8_t>(DType::kBool, {1}, {})},
       {"empty", tensor_of<double>(DType::kFloat64, {}, {0, 2})}});
  ASSERT_TRUE(save(dir / "m.npz", tree, {.format = "npz"}));
  EXPECT_EQ(
      test::run_python("ckpt_numpy.py", {"read", dir / "m.npz"}),
      "m.w <f4 [2, 2] 0000803f000040400000004000008040\n"
      "half [('bfloat16', '<u2')] [1] 803f\n"
      "f8 [('float8_e5m2', '|u1')] [2] 0102\n"
      "flag |b1 [] 01\n"
      "empty <f8 [0, 2] \n");
}

} // namespace
} // namespace lockstep::ckpt
