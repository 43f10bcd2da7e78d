// SPDX-License-Identifier: BSD-3-Clause
//
// What commands say of NumPy arrays that are no tensors, such as texts.
#include <fstream>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/ckpt/zip/zip_fixture.h"
#include "tests/cli/command_test.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

std::string array(const std::string& descr, const std::string& data) {
  const std::string literal = format(
      "{{'descr': '{}', 'fortran_order': False, 'shape': (1,), }}\n",
      descr);
  std::string bytes("\x93NUMPY\x01\x00", 8);
  ckpt::put_le<std::uint16_t>(
      bytes,
      static_cast<std::uint16_t>(literal.size()));
  return bytes + literal + data;
}

class OddArrays : public test::CommandTest {
 protected:
  /// An archive with a tensor 'w' and a text.
  void put_mixed(const std::string& name, const std::string& letter) const {
    ckpt::ZipBytes zip;
    zip.add("w.npy", array("|u1", "1"));
    zip.add("label.npy", array("<U1", letter + std::string(3, '\0')));
    put_bytes(name, zip.finish());
  }
  void put_bytes(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
};

TEST_F(OddArrays, DiffSaysWhatItDoesNotCompare) {
  put_mixed("a.npz", "a");
  put_mixed("b.npz", "b");
  EXPECT_EQ(run("diff a.npz b.npz"), 0);
  EXPECT_EQ(
      text("out.txt"),
      "equal: 1 tensor; not compared: 1 array, 'label'\n");
  EXPECT_EQ(run("diff --json a.npz b.npz"), 0);
  EXPECT_THAT(
      text("out.txt"),
      HasSubstr(R"("map_hint":"","not_compared":["label"])"));
  EXPECT_EQ(run("diff --strict a.npz b.npz"), 3); // W_ARRAY
}

TEST_F(OddArrays, VerifyDoesNotCallThemDamaged) {
  put_bytes("text.npy", array("<U1", std::string(4, 'x')));
  ckpt::ZipBytes zip;
  zip.add("a/label.npy", array("<U1", std::string(4, 'x')));
  put_bytes("text.npz", zip.finish());
  for (const char* name : {"text.npy", "text.npz"}) {
    EXPECT_EQ(run(format("verify {}", name)), 3) << name;
    EXPECT_THAT(
        text("err.txt"),
        HasSubstr("the array has the element type '<U1', which PyTorch does "
                  "not have"));
    EXPECT_THAT(text("err.txt"), HasSubstr("Hint: numpy.load reads it"));
    const std::string all = text("out.txt") + text("err.txt");
    EXPECT_EQ(all.find("damaged"), std::string::npos) << all;
  }
  EXPECT_THAT(text("out.txt"), HasSubstr("not read   E_DTYPE: "));
  EXPECT_EQ(run("verify text.npz text.npz"), 3);
  EXPECT_THAT(text("out.txt"), HasSubstr("not read    text.npz  (1 record"));
}

TEST_F(OddArrays, HintsOfCopiesAreTrue) {
  put_mixed("a.npz", "a");
  for (const char* to :
       {"pt", "pt-legacy", "safetensors", "npz", "dcp", "libtorch"}) {
    EXPECT_EQ(run(format("convert a.npz out --to {}", to)), 3) << to;
    EXPECT_THAT(
        text("err.txt"),
        HasSubstr("'label' is a NumPy array that is no tensor"))
        << to;
    EXPECT_THAT(text("err.txt"), HasSubstr("Hint: 'lockstep ckpt drop'")) << to;
  }
  EXPECT_EQ(run("pick a.npz label -o b.npz"), 3);
  EXPECT_THAT(text("err.txt"), HasSubstr("Hint: 'lockstep ckpt pick' takes"));
  ASSERT_EQ(run("drop a.npz label -o b.npz"), 0) << text("err.txt");
  EXPECT_EQ(run("convert b.npz b.pt"), 0) << text("err.txt");
}

TEST_F(OddArrays, ScanTellsNamesApartByLetterCase) {
  ckpt::ZipBytes zip;
  zip.add("W.npy", array("|u1", "1"));
  zip.add("w.npy", array("|u1", "1"));
  put_bytes("a.npz", zip.finish());
  EXPECT_EQ(run("scan a.npz"), 0) << text("err.txt");
  EXPECT_THAT(text("out.txt"), HasSubstr("clean"));
}

} // namespace
} // namespace lockstep
