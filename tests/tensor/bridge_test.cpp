// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/tensor/internal/dtype_map.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

using test::error_of;

// Bytes of a file, as a reader hands them out.
class FileBytes : public ckpt::StorageSource {
 public:
  explicit FileBytes(std::size_t size, std::size_t skip = 0)
      : bytes_(size + skip + kAlign), skip_(skip) {}

  Result<ByteSpan> load() override {
    return ByteSpan(start(), bytes_.size() - kAlign - skip_);
  }
  std::byte* start() {
    void* data = bytes_.data();
    std::size_t space = bytes_.size();
    return static_cast<std::byte*>(std::align(kAlign, 1, data, space)) + skip_;
  }

 private:
  static constexpr std::size_t kAlign = 64;
  std::vector<std::byte> bytes_;
  std::size_t skip_;
};

ckpt::Tensor file_tensor(std::shared_ptr<FileBytes> bytes, std::int64_t count) {
  auto storage = std::make_shared<ckpt::Storage>();
  storage->nbytes = static_cast<std::uint64_t>(count) * 4;
  storage->source = std::move(bytes);
  return {.sizes = {count}, .strides = {1}, .storage = std::move(storage)};
}

TEST(ToTensor, AliasesTheFilesBytesAndKeepsThemAlive) {
  auto bytes = std::make_shared<FileBytes>(12);
  std::byte* start = bytes->start();
  const std::weak_ptr<FileBytes> watch = bytes;
  at::Tensor tensor = to_tensor(file_tensor(std::move(bytes), 3));
  EXPECT_EQ(tensor.data_ptr(), start);
  EXPECT_FALSE(watch.expired());
  tensor.fill_(2);
  EXPECT_EQ(tensor.sum().item<float>(), 6.0F);
  tensor = at::Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(ToTensor, CopiesUnalignedBytes) {
  auto bytes = std::make_shared<FileBytes>(12, /*skip=*/2);
  const at::Tensor tensor = to_tensor(file_tensor(bytes, 3));
  EXPECT_NE(tensor.data_ptr(), bytes->start());
  EXPECT_EQ(tensor.sum().item<float>(), 0.0F);
}

TEST(ToTensor, RefusesAViewOutsideItsStorage) {
  const auto good = file_tensor(std::make_shared<FileBytes>(12), 3);
  ckpt::Tensor bad = good;
  bad.offset = 1;
  EXPECT_EQ(error_of([&] { to_tensor(bad); }).code, ErrorCode::kCorrupt);
  bad = good;
  bad.strides = {std::int64_t{1} << 62};
  EXPECT_EQ(error_of([&] { to_tensor(bad); }).code, ErrorCode::kCorrupt);
  bad = good;
  bad.sizes = {-1};
  EXPECT_EQ(error_of([&] { to_tensor(bad); }).code, ErrorCode::kCorrupt);
  bad = good;
  bad.storage->nbytes = 4000;
  EXPECT_EQ(
      error_of([&] { to_tensor(bad); }).message,
      "storage '' is cut: expected 4000 bytes, got 12");
}

TEST(ToTensor, RefusesQuantizedTypes) {
  ckpt::Tensor tensor = file_tensor(std::make_shared<FileBytes>(12), 3);
  tensor.dtype = ckpt::DType::kQInt8;
  EXPECT_EQ(error_of([&] { to_tensor(tensor); }).code, ErrorCode::kUnsupported);
}

TEST(ToTensor, NamesADeviceThatIsNotHere) {
  if (torch::cuda::is_available()) {
    return; // then the tensor goes there
  }
  const ckpt::Tensor tensor = file_tensor(std::make_shared<FileBytes>(12), 3);
  tensor.storage->location = "cuda:0";
  EXPECT_EQ(error_of([&] { to_tensor(tensor); }).code, ErrorCode::kUnavailable);
}

TEST(RoundTrip, KeepsMemoryOffsetAndStrides) {
  const at::Tensor base = torch::arange(12).reshape({3, 4});
  const at::Tensor view = base.t().slice(0, 1, 3);
  const ckpt::Value value = to_value(view);
  const ckpt::Tensor& file = *value.as_tensor();
  EXPECT_EQ(file.sizes, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(file.strides, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(file.offset, 1);
  EXPECT_EQ(file.storage->nbytes, 96U);
  const at::Tensor back = to_tensor(file);
  EXPECT_TRUE(torch::equal(back, view));
  EXPECT_TRUE(back.is_alias_of(base));
}

TEST(RoundTrip, KeepsSharedStorages) {
  const at::Tensor base = torch::zeros({4});
  ValueBuilder builder;
  const ckpt::Value a = builder.tensor(base);
  const ckpt::Value b = builder.tensor(base.slice(0, 2, 4));
  EXPECT_EQ(a.as_tensor()->storage, b.as_tensor()->storage);
  // From a file, too: one reader, one storage.
  auto bytes = std::make_shared<FileBytes>(16);
  ckpt::Tensor whole = file_tensor(bytes, 4);
  ckpt::Tensor half = whole;
  half.sizes = {2};
  half.offset = 2;
  TensorReader reader;
  const at::Tensor first = reader.tensor(whole);
  EXPECT_TRUE(reader.tensor(half).is_alias_of(first));
}

TEST(RoundTrip, KeepsEveryPlainDtype) {
  for (const ckpt::DTypeInfo& row : ckpt::dtype_table()) {
    const auto type = to_scalar_type(row.dtype);
    if (!type) {
      EXPECT_THAT(std::string(row.name), testing::HasSubstr("q"));
      continue;
    }
    EXPECT_EQ(to_dtype(*type), row.dtype);
    EXPECT_EQ(c10::elementSize(*type), row.size) << row.name;
    const at::Tensor tensor = torch::empty({2, 3}, *type);
    EXPECT_EQ(to_tensor(*to_value(tensor).as_tensor()).scalar_type(), *type);
  }
}

TEST(RoundTrip, KeepsConjugateAndNegativeViews) {
  const at::Tensor z = torch::complex(torch::ones({2}), torch::ones({2}));
  for (const at::Tensor& view : {z.conj(), torch::imag(z.conj())}) {
    EXPECT_TRUE(torch::equal(to_tensor(*to_value(view).as_tensor()), view));
  }
}

TEST(RoundTrip, KeepsEmptyAndScalarTensors) {
  for (const at::Tensor& tensor :
       {torch::zeros({0, 3}), torch::full({}, 7.0)}) {
    EXPECT_TRUE(torch::equal(to_tensor(*to_value(tensor).as_tensor()), tensor));
  }
}

TEST(ToValue, RefusesSparseAndUndefinedTensors) {
  EXPECT_EQ(
      error_of([] { to_value(torch::eye(3).to_sparse()); }).code,
      ErrorCode::kUnsupported);
  EXPECT_EQ(
      error_of([] { to_value(at::Tensor()); }).code,
      ErrorCode::kUnsupported);
}

TEST(StateDictValue, CarriesVersionsBothWays) {
  const StateDict weights = state_dict(test::Net());
  const ckpt::Value value = to_value(weights);
  EXPECT_EQ(value.as_dict()->kind, ckpt::Dict::Kind::kOrderedDict);
  EXPECT_EQ(*value.as_dict()->attributes.at(0).first.as_string(), "_metadata");
  const StateDict back = to_state_dict(value);
  EXPECT_TRUE(test::equal(back, weights));
  EXPECT_EQ(back.versions, weights.versions);
}

TEST(ToStateDict, RefusesWhatIsNoTensor) {
  using ckpt::Value;
  EXPECT_EQ(
      error_of([] { to_state_dict(Value::list({})); }).message,
      "Expected state_dict to be dict-like, got <class 'list'>.");
  EXPECT_EQ(
      error_of([] {
        to_state_dict(Value::dict({{"a", 1.5}}));
      }).message,
      "expected a tensor under 'a', got <class 'float'>");
  EXPECT_EQ(
      error_of([] {
        to_state_dict(Value::dict({{1, 1.5}}));
      }).message,
      "expected keys of type str in state_dict, got int");
}

} // namespace
} // namespace lockstep
