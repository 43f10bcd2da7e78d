// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_writer.h"

#include <sys/mman.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "lockstep/ckpt/zip/crc32.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

// Keeps what is written, but of large writes only the length.
class SparseFile final : public WritableFile {
 public:
  // Less than a block of a payload.
  static constexpr std::size_t kKept = 200 << 10;

  Status write(ByteSpan bytes) override {
    if (bytes.size() <= kKept) {
      small_.emplace_back(position_, std::string(bytes.size(), '\0'));
      std::transform(
          bytes.begin(),
          bytes.end(),
          small_.back().second.begin(),
          [](std::byte b) { return static_cast<char>(b); });
    }
    position_ += bytes.size();
    return {};
  }
  Status write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override {
    return Error{.code = ErrorCode::kUnsupported};
  }
  Status sync() override {
    return {};
  }
  Status close() override {
    return {};
  }
  [[nodiscard]] std::uint64_t size() const {
    return position_;
  }
  // The kept bytes at [offset, offset + length), zeros elsewhere.
  [[nodiscard]] std::string at(std::uint64_t offset, std::uint64_t length)
      const {
    std::string out(length, '\0');
    for (const auto& [start, bytes] : small_) {
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (start + i >= offset && start + i < offset + length) {
          out[start + i - offset] = bytes[i];
        }
      }
    }
    return out;
  }

 private:
  std::uint64_t position_ = 0;
  std::vector<std::pair<std::uint64_t, std::string>> small_;
};

class SparseSource final : public ByteSource {
 public:
  explicit SparseSource(const SparseFile& file) : file_(file) {}
  [[nodiscard]] std::uint64_t size() const override {
    return file_.size();
  }
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    const std::string bytes = file_.at(offset, length);
    const auto span = as_byte_span(bytes);
    scratch.assign(span.begin(), span.end());
    return ByteSpan(scratch);
  }
  [[nodiscard]] bool is_stable() const override {
    return false;
  }

 private:
  const SparseFile& file_;
};

// Address space that reads as zeros and costs no memory.
class Zeros {
 public:
  explicit Zeros(std::size_t size)
      : size_(size),
        data_(::mmap(
            nullptr,
            size,
            PROT_READ,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
            -1,
            0)) {}
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  ~Zeros() {
    ::munmap(data_, size_);
  }
  [[nodiscard]] ByteSpan bytes() const {
    return {static_cast<const std::byte*>(data_), size_};
  }

 private:
  std::size_t size_;
  void* data_;
};

TEST(ZipWriter, WritesWhatTheReaderReads) {
  const std::vector<PlannedRecord> plan{
      {"data.pkl", 3},
      {"data/0", 700'000},
      {"data/1", 0}};
  SparseFile file;
  ZipWriter zip(file, "model");
  for (const PlannedRecord& record : plan) {
    const std::string bytes(record.size, 'b');
    ASSERT_TRUE(zip.add(record.name, as_byte_span(bytes)));
  }
  ASSERT_TRUE(zip.finish());
  EXPECT_EQ(file.size(), zip_file_bytes("model", plan));
  EXPECT_EQ(zip.position(), file.size());

  const auto reader = ZipReader::open(std::make_shared<SparseSource>(file));
  ASSERT_TRUE(reader) << to_string(reader.error());
  EXPECT_EQ(reader->root(), "model");
  ASSERT_EQ(reader->records().size(), 4U);
  for (const ZipRecord& record : reader->records()) {
    EXPECT_EQ(record.data_offset % 64, 0U) << record.name;
  }
  EXPECT_TRUE(reader->check_crc(*reader->find("data.pkl")));
  EXPECT_EQ(
      reader->find("data/0")->crc,
      crc32(as_byte_span(std::string(700'000, 'b'))));
  EXPECT_EQ(reader->find(".data/serialization_id")->size, 40U);
}

TEST(ZipWriter, UsesWideFieldsBeyondFourGigabytes) {
  constexpr std::uint64_t kLarge = 0xFFFFFFFF;
  const Zeros zeros(kLarge);
  SparseFile file;
  ZipWriter zip(file, "big");
  ASSERT_TRUE(zip.add("data/0", zeros.bytes()));
  ASSERT_TRUE(zip.add("data/1", as_byte_span("tail")));
  ASSERT_TRUE(zip.finish());
  const std::vector<PlannedRecord> plan{{"data/0", kLarge}, {"data/1", 4}};
  EXPECT_EQ(file.size(), zip_file_bytes("big", plan));

  const auto reader = ZipReader::open(std::make_shared<SparseSource>(file));
  ASSERT_TRUE(reader) << to_string(reader.error());
  const ZipRecord* first = reader->find("data/0");
  const ZipRecord* second = reader->find("data/1");
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(first->size, kLarge);
  EXPECT_GT(second->header_offset, kLarge);
  EXPECT_TRUE(reader->check_crc(*second));
  // Local header: zip64 field of 16 bytes {size, 0}; descriptor of 24 bytes.
  const std::string extra = file.at(30 + 10, 20);
  EXPECT_EQ(extra.substr(0, 4), std::string("\1\0\x10\0", 4));
  EXPECT_EQ(extra.substr(4, 8), std::string("\xff\xff\xff\xff\0\0\0\0", 8));
  EXPECT_EQ(extra.substr(12, 8), std::string(8, '\0'));
  EXPECT_EQ(first->data_offset + kLarge + 24, second->header_offset);
}

// Notes where large writes begin and end.
class WriteLog final : public WritableFile {
 public:
  Status write(ByteSpan bytes) override {
    if (bytes.size() >= 32 << 10) {
      large.emplace_back(position_, position_ + bytes.size());
    }
    position_ += bytes.size();
    return {};
  }
  Status write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override {
    return Error{.code = ErrorCode::kUnsupported};
  }
  Status sync() override {
    return {};
  }
  Status close() override {
    return {};
  }

  std::vector<std::pair<std::uint64_t, std::uint64_t>> large;

 private:
  std::uint64_t position_ = 0;
};

TEST(ZipWriter, LargeWritesCoverWholePages) {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kBlock = 512 << 10;
  const std::string payload((2 << 20) + 77, 'x');
  WriteLog file;
  ZipWriter zip(file, "a");
  ASSERT_TRUE(zip.add("data/0", as_byte_span(payload)));
  ASSERT_TRUE(zip.add("data/1", as_byte_span(payload)));
  ASSERT_TRUE(zip.finish());
  ASSERT_GE(file.large.size(), 8U);
  for (const auto& [begin, end] : file.large) {
    EXPECT_EQ(begin % kPage, 0U);
    EXPECT_EQ(end % kPage, 0U);
    EXPECT_EQ(begin / kBlock, (end - 1) / kBlock);
  }
}

} // namespace
} // namespace lockstep::ckpt
