// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

// `scalar(dtype(code), bytes)` of NumPy before 2.0.
Pickle
scalar(std::string_view code, std::string_view order, std::string_view bytes) {
  Pickle pickle(/*protocol=*/3);
  pickle.global("numpy.core.multiarray", "scalar");
  pickle.global("numpy", "dtype").text(code).int4(0).int4(1);
  pickle.tuple(3).op('R').mark().int4(3).text(order).op('t').op('b');
  pickle.op('C').number(bytes.size(), 1).raw(bytes).tuple(2).op('R');
  return pickle.stop();
}

TEST(NumpyScalar, IsPythonsNumber) {
  const auto real = read(scalar("f4", "<", {"\0\0\x80\x3f", 4}));
  EXPECT_EQ(*real->root.as_float(), 1);
  const auto big_endian = read(scalar("f4", ">", {"\x3f\x80\0\0", 4}));
  EXPECT_EQ(*big_endian->root.as_float(), 1);
  const auto negative = read(scalar("i2", "<", "\xfe\xff"));
  EXPECT_EQ(*negative->root.as_int(), -2);
  const auto boolean = read(scalar("b1", "|", "\1"));
  EXPECT_TRUE(*boolean->root.as_bool());
  EXPECT_FALSE(real->globals[0].is_safe) << "the file still needs NumPy";
}

TEST(NumpyScalar, StaysAsItIsWhereItIsNoNumber) {
  EXPECT_NE(read(scalar("S2", "|", "xy"))->root.as_object(), nullptr);
  EXPECT_NE(read(scalar("f4", "<", "xy"))->root.as_object(), nullptr)
      << "short";
  EXPECT_NE(read(scalar("f4", "", "long"))->root.as_object(), nullptr);
  EXPECT_NE(read(scalar("O8", "|", "12345678"))->root.as_object(), nullptr);
  EXPECT_NE(read(scalar("V2", "<", "xy"))->root.as_object(), nullptr);
  EXPECT_NE(read(scalar("4", "<f", "long"))->root.as_object(), nullptr);
  Pickle bare;
  bare.global("numpy._core.multiarray", "scalar").op(')').op('R').stop();
  EXPECT_NE(read(bare)->root.as_object(), nullptr);
}

// 100 numbers in 8 files.
TEST(NumpyScalarOracle, EveryTypeIsTheNumberThatItemGives) {
  const test::ScratchDir dir;
  test::run_python("ckpt_numpy_numbers.py", {"make", dir.path()});
  for (const char* protocol : {"2", "3", "4", "5"}) {
    for (const char* is_zip : {"True", "False"}) {
      const std::string file = dir / (std::string(protocol) + is_zip + ".pt");
      const auto read = load(file);
      ASSERT_TRUE(read) << to_string(read.error());
      ASSERT_TRUE(save(file + ".copy", read->root));
    }
  }
  EXPECT_EQ(
      test::python_lines("ckpt_numpy_numbers.py", {"check", dir.path()}),
      std::vector<std::string>{std::to_string(8 * 100)});
}

} // namespace
} // namespace lockstep::ckpt
