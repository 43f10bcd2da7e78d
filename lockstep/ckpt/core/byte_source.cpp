// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/byte_source.h"

#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep::ckpt {
namespace {

Status
check_range(std::uint64_t size, std::uint64_t offset, std::uint64_t length) {
  if (offset <= size && length <= size - offset) {
    return {};
  }
  return Error{
      .code = ErrorCode::kCorrupt,
      .op = "ckpt.read",
      .message = format(
          "a range reaches past the end of the file; expected at most {} "
          "bytes, got offset {} "
          "and length {}",
          size,
          offset,
          length),
      .offset = offset,
      .detail = "E_BOUNDS"};
}

// Bytes in memory, whose owner may be somebody else.
class SpanSource final : public ByteSource {
 public:
  SpanSource(ByteSpan bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}
  [[nodiscard]] std::uint64_t size() const override {
    return bytes_.size();
  }
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& /*scratch*/) override {
    LOCKSTEP_TRY(check_range(bytes_.size(), offset, length));
    return bytes_.subspan(offset, length);
  }
  [[nodiscard]] bool is_stable() const override {
    return true;
  }

 private:
  ByteSpan bytes_;
  std::shared_ptr<const void> owner_;
};

class FileSource final : public ByteSource {
 public:
  explicit FileSource(std::unique_ptr<ReadableFile> file)
      : file_(std::move(file)) {}
  [[nodiscard]] std::uint64_t size() const override {
    return file_->size();
  }
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    LOCKSTEP_TRY(check_range(file_->size(), offset, length));
    if (scratch.size() < length) {
      scratch.resize(length);
    }
    const auto bytes = std::span(scratch).first(length);
    LOCKSTEP_TRY(file_->read_at(offset, bytes));
    return ByteSpan(bytes);
  }
  [[nodiscard]] bool is_stable() const override {
    return false;
  }
  [[nodiscard]] ReadableFile* file() const override {
    return file_.get();
  }

 private:
  std::unique_ptr<ReadableFile> file_;
};

class SliceSource final : public ByteSource {
 public:
  SliceSource(
      std::shared_ptr<ByteSource> source,
      std::uint64_t offset,
      std::uint64_t length)
      : source_(std::move(source)), offset_(offset), length_(length) {}
  [[nodiscard]] std::uint64_t size() const override {
    return length_;
  }
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    LOCKSTEP_TRY(check_range(length_, offset, length));
    return source_->view(offset_ + offset, length, scratch);
  }
  [[nodiscard]] bool is_stable() const override {
    return source_->is_stable();
  }

 private:
  std::shared_ptr<ByteSource> source_;
  std::uint64_t offset_;
  std::uint64_t length_;
};

using Opened = Result<std::shared_ptr<ByteSource>>;

} // namespace

std::shared_ptr<ByteSource> make_source(std::shared_ptr<FileMapping> mapping) {
  const ByteSpan bytes = mapping->bytes();
  return make_source(bytes, std::move(mapping));
}

std::shared_ptr<ByteSource> make_source(std::unique_ptr<ReadableFile> file) {
  return std::make_shared<FileSource>(std::move(file));
}

std::shared_ptr<ByteSource> make_source(ByteSpan bytes) {
  return make_source(bytes, nullptr);
}

std::shared_ptr<ByteSource> make_source(
    ByteSpan bytes,
    std::shared_ptr<const void> owner) {
  return std::make_shared<SpanSource>(bytes, std::move(owner));
}

std::shared_ptr<ByteSource> slice_source(
    std::shared_ptr<ByteSource> source,
    std::uint64_t offset,
    std::uint64_t length) {
  return std::make_shared<SliceSource>(std::move(source), offset, length);
}

Result<std::shared_ptr<ByteSource>> open_source(
    const std::string& path,
    const SourceOptions& options,
    FileSystem& fs) {
  if (options.use_mmap) {
    auto mapping = fs.map(path);
    return mapping ? Opened(make_source(*std::move(mapping)))
                   : Opened(std::move(mapping).error());
  }
  auto file = fs.open_read(path);
  return file ? Opened(make_source(*std::move(file)))
              : Opened(std::move(file).error());
}

} // namespace lockstep::ckpt
