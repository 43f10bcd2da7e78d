// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/zip/crc32.h"
#include "tests/ckpt/expected_files.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

template <class T>
Value dict_of(std::string_view name, T value) {
  Value dict = Dict{};
  dict.as_dict()->items.emplace_back(
      std::string(name),
      Value(std::move(value)));
  return dict;
}

// What `work` throws, as its code and text.
template <class Work>
Error error_of(Work work) {
  try {
    work();
  } catch (const Exception& e) {
    return e.error();
  }
  return {.message = "nothing was thrown"};
}

class TensorsOf : public testing::TestWithParam<std::string> {};

// In every format, whether mapped or not, whatever strides and flags.
TEST_P(TensorsOf, GivesEachByNameWithItsElementsRowByRow) {
  const auto expected = test::expectation_of(GetParam())["tensors"];
  for (const bool use_mmap : {true, false}) {
    std::size_t row = 0;
    for (const auto& [name, tensor] :
         tensors(GetParam(), {.use_mmap = use_mmap})) {
      ASSERT_LT(row, expected.size()) << name;
      const auto& wanted = expected[row++];
      EXPECT_EQ(nlohmann::json(name), wanted["name"]);
      EXPECT_EQ(nlohmann::json(tensor.sizes), wanted["shape"]) << name;
      EXPECT_TRUE(tensor.is_contiguous()) << name;
      const std::span<const std::byte> bytes = tensor.span<std::byte>();
      EXPECT_EQ(nlohmann::json(crc32(bytes)), wanted["crc32"]) << name;
      EXPECT_EQ(bytes.data(), tensor.span<std::byte>().data()) << name;
      if (tensor.dtype == DType::kFloat32) {
        EXPECT_EQ(tensor.span<float>().size(), tensor.numel()) << name;
      }
    }
    EXPECT_EQ(row, expected.size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Testdata,
    TensorsOf,
    testing::ValuesIn(test::expected_files("testdata/valid")),
    test::file_test_name);

TEST(Tensors, OfAMappedFileAreNotCopied) {
  const auto file = load("testdata/valid/tiny.pt");
  const auto all = tensors_of(file->root);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(
      all[0].tensor.span<std::byte>().data(),
      file->root.find("w")->as_tensor()->storage->source->load()->data());
}

TEST(Tensors, OutliveTheFileAndEachOther) {
  std::vector<float> numbers;
  {
    const Tensor kept = tensors("testdata/valid/tiny.pt")[0].tensor;
    std::ranges::copy(kept.span<float>(), std::back_inserter(numbers));
  }
  EXPECT_EQ(numbers.size(), 2);
}

TEST(Tensors, GatherStridesAndApplyFlags) {
  Tensor matrix = tensor_of<float>(DType::kFloat32, {1, 2, 3, 4, 5, 6}, {3, 2});
  matrix.strides = {1, 3};
  matrix.is_neg = true;
  const auto all = tensors_of(dict_of("m", matrix));
  EXPECT_THAT(
      all[0].tensor.span<float>(),
      testing::ElementsAre(-1, -4, -2, -5, -3, -6));
  const Error error = error_of([&] { return matrix.span<float>(); });
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.hint, testing::HasSubstr("tensors()"));
}

// A legacy file has its storages behind pickles of any length.
TEST(Tensors, LieWhereTheirTypeMay) {
  for (const std::uint64_t skipped : {0, 1, 2, 3}) {
    struct Shifted final : StorageSource {
      std::string bytes = std::string(16, '\0');
      std::size_t from = 0;
      Result<ByteSpan> load() override {
        return as_byte_span(bytes).subspan(from, 8);
      }
    };
    auto source = std::make_shared<Shifted>();
    source->from = skipped;
    source->bytes.replace(skipped, 8, std::string("\0\0\x80?\0\0\0@", 8));
    Tensor tensor = tensor_of<float>(DType::kFloat32, {0, 0}, {2});
    tensor.storage->source = source;
    const auto all = tensors_of(dict_of("w", tensor));
    EXPECT_THAT(all[0].tensor.span<float>(), testing::ElementsAre(1, 2));
    EXPECT_EQ(
        error_of([&] { return tensor.span<float>(); }).code,
        skipped == 0 ? ErrorCode::kInternal : ErrorCode::kInvalidArgument);
  }
}

TEST(Tensors, SayWhatCannotBeRead) {
  const Tensor ints = tensor_of<std::int64_t>(DType::kInt64, {1, 2}, {2});
  EXPECT_EQ(
      to_string(error_of([&] { return ints.span<float>(); })),
      "[ckpt.span] expected elements of float32, got int64. Hint: ask for the "
      "tensor's own type; std::byte reads any.");
  EXPECT_EQ(ints.span<std::byte>().size(), 16);

  Tensor flags = tensor_of<std::uint8_t>(DType::kBool, {1, 0}, {2});
  EXPECT_THAT(flags.span<std::uint8_t>(), testing::ElementsAre(1, 0));

  Tensor meta = ints;
  meta.storage = nullptr;
  const auto all = tensors_of(dict_of("m", meta));
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(
      error_of([&] { return all[0].tensor.span<std::int64_t>(); }).code,
      ErrorCode::kUnsupported);

  EXPECT_EQ(
      error_of([] { return tensors("absent.pt"); }).code,
      ErrorCode::kNotFound);
}

// PyTorch writes x[2:, 3:] of a [2, 3] so: nothing, from behind the end.
TEST(Tensors, MayBeEmptyBehindTheirStorage) {
  Tensor empty = tensor_of<float>(DType::kFloat32, {1, 2, 3, 4, 5, 6}, {2, 3});
  empty.sizes = {0, 0};
  empty.offset = 9;
  EXPECT_TRUE(empty.span<float>().empty());
  EXPECT_TRUE(tensors_of(dict_of("e", empty))[0].tensor.span<float>().empty());
}

TEST(Tensors, OfAStorageThatIsTooShortAreRefused) {
  Tensor tensor = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
  tensor.offset = 1;
  const auto all = tensors_of(dict_of("w", tensor));
  for (const Tensor& outside : {tensor, all[0].tensor}) {
    const Error error = error_of([&] { return outside.span<float>(); });
    EXPECT_EQ(error.code, ErrorCode::kCorrupt);
    EXPECT_EQ(error.detail, "E_VIEW_BOUNDS");
    EXPECT_EQ(
        error.message,
        "expected 8 bytes from byte 4 of the storage, it has 8");
  }
}

// What was read before an error is not in front of the second try.
TEST(Tensors, AreRightAfterAnErrorThatPasses) {
  struct Failing final : StorageSource {
    std::string bytes = std::string(4'000'000, '\0');
    int views = 0;
    Result<ByteSpan> load() override {
      return as_byte_span(bytes);
    }
    Result<ByteSpan> view(
        std::uint64_t offset,
        std::uint64_t length,
        std::vector<std::byte>& /*scratch*/) override {
      if (++views == 2) {
        return Error{.code = ErrorCode::kIo, .message = "try again"};
      }
      return as_byte_span(bytes).subspan(offset, length);
    }
  };
  Tensor tensor = tensor_of<float>(DType::kFloat32, {0}, {1'000'000});
  tensor.storage->nbytes = 4'000'000;
  tensor.storage->source = std::make_shared<Failing>();
  tensor.is_neg = true;
  const auto all = tensors_of(dict_of("w", tensor));
  EXPECT_EQ(
      error_of([&] { return all[0].tensor.span<float>(); }).code,
      ErrorCode::kIo);
  EXPECT_EQ(all[0].tensor.span<float>().size(), 1'000'000);
}

TEST(Tensors, AreBoundedWhereAViewRepeatsItsBytes) {
  Tensor huge = tensor_of<float>(DType::kFloat32, {1}, {1});
  huge.sizes = {std::int64_t{1} << 34};
  huge.strides = {0};
  const auto all = tensors_of(dict_of("w", huge));
  EXPECT_EQ(
      error_of([&] { return all[0].tensor.span<float>(); }).detail,
      "E_LIMIT");
}

// A thousand views of four bytes, each of which is small enough.
TEST(Tensors, AreBoundedTogetherWhereViewsRepeatTheSameBytes) {
  Tensor view = tensor_of<float>(DType::kFloat32, {1}, {1});
  view.sizes = {200};
  view.strides = {0};
  Tensor flipped = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
  flipped.is_neg = true;
  Dict dict;
  for (const char* name : {"a", "b", "c"}) {
    dict.items.emplace_back(name, view);
  }
  dict.items.emplace_back("flipped", flipped);
  const auto all = tensors_of(Value(dict), {.max_expanded_bytes = 1000});
  const auto read = [&all](std::size_t i) {
    return error_of([&] { static_cast<void>(all[i].tensor.span<float>()); })
        .detail;
  };
  EXPECT_EQ(read(0), "");
  EXPECT_EQ(read(1), "E_LIMIT");
  EXPECT_EQ(read(1), "E_LIMIT");
  EXPECT_EQ(read(0), "") << "counted once";
  EXPECT_EQ(read(3), "") << "what was refused does not count";
  std::uint64_t streamed = 0;
  const auto count = [&streamed](ByteSpan block) {
    streamed += block.size();
    return Status();
  };
  const Tensor& last = all[2].tensor;
  EXPECT_EQ(last.storage->source->stream(count).error().detail, "E_LIMIT");
  EXPECT_EQ(streamed, 0U);
  // Another call has a limit of its own.
  const auto others = tensors_of(Value(dict), {.max_expanded_bytes = 1000});
  EXPECT_TRUE(others[2].tensor.storage->source->stream(count));
  EXPECT_EQ(streamed, 800U);
}

// Those that lie row by row in a file are not copied for who reads blocks.
TEST(Tensors, GiveBlocksOfTheirFile) {
  struct Counted final : StorageSource {
    std::string bytes = "abcdefgh";
    int loads = 0;
    Result<ByteSpan> load() override {
      ++loads;
      return as_byte_span(bytes);
    }
    Result<ByteSpan> view(
        std::uint64_t offset,
        std::uint64_t length,
        std::vector<std::byte>& /*scratch*/) override {
      return as_byte_span(bytes).subspan(offset, length);
    }
  };
  const auto source = std::make_shared<Counted>();
  Tensor tensor = bytes_tensor("abcdefgh", {8});
  tensor.storage->source = source;
  tensor.sizes = {3};
  tensor.offset = 2;
  const auto all = tensors_of(dict_of("w", tensor));
  std::string text;
  EXPECT_TRUE(for_each_block(all[0].tensor, [&text](ByteSpan block) {
    text += as_text(block);
    return Status();
  }));
  EXPECT_EQ(text, "cde");
  EXPECT_EQ(source->loads, 0);
}

} // namespace
} // namespace lockstep::ckpt
