// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

const SaveOptions kLegacy{.format = "pt-legacy"};

Value many_tensors(int count) {
  Value root = Value::ordered_dict({});
  for (int i = 0; i < count; ++i) {
    root.set(
        "w" + std::to_string(i),
        tensor_of<float>(DType::kFloat32, {float(i), 0.5F}, {2}));
  }
  return root;
}

TEST(LegacyWriter, WritesWhatTheReaderReads) {
  MemoryFs fs;
  const Value root = many_tensors(12); // keys sort as 0, 1, 10, 11, 2
  ASSERT_TRUE(save("m.pt", root, kLegacy, fs));
  const auto file = load("m.pt", {}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->format, "legacy");
  EXPECT_TRUE(file->warnings.empty());
  EXPECT_EQ(*digest(file->root), *digest(root));
}

TEST(LegacyWriter, KeepsSharedMemory) {
  MemoryFs fs;
  Tensor base = tensor_of<float>(DType::kFloat32, {1, 2, 3, 4}, {4});
  Tensor part = base;
  part.sizes = {2};
  part.offset = 2;
  ASSERT_TRUE(save("m.pt", Value::list({base, part}), kLegacy, fs));
  const auto file = load("m.pt", {}, fs);
  ASSERT_TRUE(file);
  const auto& items = file->root.as_list()->items;
  EXPECT_EQ(items[0].as_tensor()->storage, items[1].as_tensor()->storage);
  EXPECT_EQ(file->storages.size(), 1U);
}

TEST(LegacyWriter, GivesEqualBytesForEqualTrees) {
  MemoryFs fs;
  ASSERT_TRUE(save("a.pt", many_tensors(3), kLegacy, fs));
  ASSERT_TRUE(save("b.pt", many_tensors(3), kLegacy, fs));
  EXPECT_EQ(*read_text(fs, "a.pt"), *read_text(fs, "b.pt"));
}

TEST(LegacyWriter, RefusesWhatPyTorchCannotReadInThisFormat) {
  MemoryFs fs;
  const Value root = Value::dict(
      {{"u", tensor_of<std::uint16_t>(DType::kUInt16, {1, 2}, {2})}});
  const Status status = save("m.pt", root, kLegacy, fs);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().detail, "E_NOT_SAFE");
  EXPECT_EQ(status.error().path, "m.pt");
  EXPECT_FALSE(fs.stat("m.pt"));
}

TEST(LegacyWriter, RefusesATensorWithoutBytes) {
  MemoryFs fs;
  Tensor tensor = tensor_of<float>(DType::kFloat32, {1}, {1});
  tensor.storage->source = nullptr;
  const Status status = save("m.pt", Value::list({tensor}), kLegacy, fs);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_TENSOR");
}

TEST(LegacyWriter, LeavesNothingBehindIfAStorageFails) {
  class Broken final : public StorageSource {
   public:
    Result<ByteSpan> load() override {
      return Error{.code = ErrorCode::kCorrupt, .detail = "E_CRC"};
    }
  };
  MemoryFs fs;
  Tensor tensor = tensor_of<float>(DType::kFloat32, {1}, {1});
  tensor.storage->source = std::make_shared<Broken>();
  const Status status = save("m.pt", Value::list({tensor}), kLegacy, fs);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_CRC");
  EXPECT_FALSE(fs.stat("m.pt"));
}

// PyTorch fills storages after it has made tensors of them.
TEST(LegacyWriter, RefusesANestedTensor) {
  MemoryFs fs;
  const Tensor sizes = tensor_of<float>(DType::kInt64, {1, 2}, {1});
  const Value nested = Object{
      .global = "torch._utils._rebuild_nested_tensor",
      .args = std::make_shared<Value>(Value::tuple({sizes}))};
  const Status status = save("m.pt", Value::list({nested}), kLegacy, fs);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().hint, "write the format 'pt'");
  EXPECT_TRUE(save("m.pt", Value::list({nested}), {}, fs));
}

} // namespace
} // namespace lockstep::ckpt
