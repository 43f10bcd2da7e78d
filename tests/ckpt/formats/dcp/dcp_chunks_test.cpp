// SPDX-License-Identifier: BSD-3-Clause
//
// How much of a tensor of several chunks is in memory while it is read.
#include "lockstep/ckpt/formats/dcp/dcp_chunks.h"

#include <gmock/gmock.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

// As a file that is not mapped: gives copies, and counts what it keeps.
class ReadBytes final : public StorageSource {
 public:
  explicit ReadBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<ByteSpan> load() override {
    ++loads;
    return as_byte_span(bytes_);
  }
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    ++views;
    const ByteSpan part = as_byte_span(bytes_).subspan(offset, length);
    scratch.assign(part.begin(), part.end());
    return ByteSpan(scratch);
  }
  Status stream(const BlockVisitor& visit) override {
    ++streams;
    return visit(as_byte_span(bytes_));
  }

  int loads = 0;
  int views = 0;
  int streams = 0;

 private:
  std::string bytes_;
};

// The chunks of a tensor of bytes.
struct Chunks {
  explicit Chunks(
      std::vector<std::int64_t> sizes,
      DType dtype = DType::kUInt8) {
    item.name = "w";
    item.is_tensor = true;
    item.dtype = dtype;
    item.sizes = std::move(sizes);
  }

  void add(
      const std::string& bytes,
      const std::vector<std::int64_t>& offsets,
      const std::vector<std::int64_t>& sizes,
      bool is_transposed = false) {
    Tensor tensor = bytes_tensor(bytes, sizes);
    tensor.dtype = item.dtype;
    tensor.storage->source =
        sources.emplace_back(std::make_shared<ReadBytes>(bytes));
    if (is_transposed) {
      tensor.strides = {1, sizes[0]};
    }
    item.chunks.push_back({.offsets = offsets, .sizes = sizes});
    parts.push_back(
        {.offsets = offsets,
         .sizes = sizes,
         .tensor = std::make_shared<Tensor>(std::move(tensor))});
  }

  [[nodiscard]] std::shared_ptr<StorageSource> source() const {
    EXPECT_TRUE(internal::check_coverage(item, {}));
    return internal::make_chunked_tensor(item, parts, {}, nullptr)
        .storage->source;
  }

  [[nodiscard]] int loads() const {
    int count = 0;
    for (const auto& source : sources) {
      count += source->loads;
    }
    return count;
  }

  DcpItem item;
  std::vector<internal::DcpPart> parts;
  std::vector<std::shared_ptr<ReadBytes>> sources;
};

std::string streamed(StorageSource& source) {
  std::string text;
  const Status status = source.stream([&text](ByteSpan block) {
    text += as_text(block);
    return Status();
  });
  return status ? text : to_string(status.error());
}

// All views of `source` are those of `expected`, in the caller's memory.
void expect_views(StorageSource& source, std::string_view expected) {
  for (std::uint64_t from = 0; from <= expected.size(); ++from) {
    for (std::uint64_t size = 0; from + size <= expected.size(); ++size) {
      std::vector<std::byte> scratch;
      const auto view = source.view(from, size, scratch);
      ASSERT_TRUE(view) << to_string(view.error());
      EXPECT_EQ(as_text(*view), expected.substr(from, size));
      EXPECT_TRUE(size == 0 || view->data() == scratch.data()) << from;
    }
  }
}

TEST(DcpChunks, OfRowsAreReadWithoutBeingKept) {
  Chunks chunks({3, 2});
  chunks.add("ef", {2, 0}, {1, 2}); // ranks come in any order
  chunks.add("abcd", {0, 0}, {2, 2});
  const auto source = chunks.source();
  expect_views(*source, "abcdef");
  EXPECT_EQ(streamed(*source), "abcdef");
  EXPECT_EQ(chunks.loads(), 0);
  EXPECT_EQ(chunks.sources[0]->streams, 1);
  EXPECT_EQ(as_text(*source->load()), "abcdef");
}

TEST(DcpChunks, OfColumnsAreReadWithoutBeingKept) {
  Chunks chunks({2, 3});
  chunks.add("ad", {0, 0}, {2, 1});
  chunks.add("bcef", {0, 1}, {2, 2});
  const auto source = chunks.source();
  expect_views(*source, "abcdef");
  EXPECT_EQ(streamed(*source), "abcdef");
  EXPECT_EQ(as_text(*source->load()), "abcdef");
  EXPECT_EQ(chunks.loads(), 0);
}

TEST(DcpChunks, AloneIsReadAndAliased) {
  Chunks chunks({2, 3});
  chunks.add("abcdef", {0, 0}, {2, 3});
  const auto source = chunks.source();
  expect_views(*source, "abcdef");
  EXPECT_EQ(streamed(*source), "abcdef");
  EXPECT_EQ(chunks.loads(), 0);
  EXPECT_EQ(source->load()->data(), chunks.sources[0]->load()->data());
}

// As a transposed weight is saved.
TEST(DcpChunks, ThatAreStridedAreDroppedAfterTheirLastByte) {
  Chunks alone({2, 3});
  alone.add("adbecf", {0, 0}, {2, 3}, true);
  Chunks columns({2, 3});
  columns.add("ad", {0, 0}, {2, 1});
  columns.add("becf", {0, 1}, {2, 2}, true);
  for (const Chunks* chunks : {&alone, &columns}) {
    const auto source = chunks->source();
    const int& reads = chunks->sources.back()->views;
    std::vector<std::byte> scratch;
    EXPECT_EQ(as_text(*source->view(0, 4, scratch)), "abcd");
    EXPECT_EQ(as_text(*source->view(4, 2, scratch)), "ef");
    EXPECT_EQ(reads, 1) << "made once from front to end";
    EXPECT_EQ(as_text(*source->view(2, 2, scratch)), "cd");
    EXPECT_EQ(reads, 2) << "nothing was kept";
    EXPECT_EQ(streamed(*source), "abcdef");
    expect_views(*source, "abcdef");
    EXPECT_EQ(as_text(*source->load()), "abcdef");
    EXPECT_EQ(chunks->loads(), 0);
  }
}

TEST(DcpChunks, OfElementsThatShareBytesAreOne) {
  Chunks chunks({3, 3}, DType::kQUInt4x2);
  chunks.item.chunks = {{.offsets = {0, 0}, .sizes = {3, 3}}};
  Tensor packed = bytes_tensor("abcdef", {6});
  packed.dtype = DType::kQUInt4x2;
  packed.sizes = {3, 3};
  packed.strides = {3, 1};
  chunks.parts = {
      {.offsets = {0, 0},
       .sizes = {3, 3},
       .tensor = std::make_shared<Tensor>(packed)}};
  const auto source = chunks.source();
  EXPECT_EQ(as_text(*source->load()), "abcdef");
  EXPECT_EQ(streamed(*source), "abcdef");

  chunks.item.chunks = {
      {.offsets = {0, 0}, .sizes = {3, 1}},
      {.offsets = {0, 1}, .sizes = {3, 2}}};
  const Status status = internal::check_coverage(chunks.item, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().detail, "E_DTYPE");
}

TEST(DcpChunks, WithoutElementsAreEmpty) {
  Chunks chunks({0, 3});
  const auto source = chunks.source();
  expect_views(*source, "");
  EXPECT_EQ(streamed(*source), "");
  EXPECT_TRUE(source->load()->empty());
}

// Of a folder whose files are not mapped; a checksum is compared all the same.
TEST(DcpChunks, OfAFolderAreReadWhereTheyLie) {
  const Value root = Value::dict({{"w", bytes_tensor("abcdef", {2, 3})}});
  MemoryFs fs;
  ASSERT_TRUE(save("d", root, {.format = "dcp"}, fs));
  const auto file = load("d", {.use_mmap = false}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  const auto& source = file->root.find("w")->as_tensor()->storage->source;
  expect_views(*source, "abcdef");
  EXPECT_EQ(streamed(*source), "abcdef");
  EXPECT_EQ(*digest(*file->root.find("w")), *digest(*root.find("w")));

  const std::string path = "d/__0_0.distcp";
  std::string bytes = read_text(fs, path).value();
  bytes.at(bytes.find("abcdef")) = 'X';
  ASSERT_TRUE(fs.remove(path));
  auto changed = fs.create(path, 0644);
  ASSERT_TRUE(changed && (*changed)->write(as_byte_span(bytes)));
  ASSERT_TRUE((*changed)->close());
  const auto damaged = load("d", {.use_mmap = false}, fs);
  ASSERT_TRUE(damaged) << to_string(damaged.error());
  const auto& bad = damaged->root.find("w")->as_tensor()->storage->source;
  EXPECT_THAT(streamed(*bad), testing::HasSubstr("CRC"));
  std::vector<std::byte> scratch;
  EXPECT_EQ(bad->view(0, 6, scratch).error().detail, "E_CRC");
}

} // namespace
} // namespace lockstep::ckpt
