// SPDX-License-Identifier: BSD-3-Clause
//
// The pickle first (it decides which storages there are and in which
// order), then the size, then one pass over the bytes.
#include <utility>

#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/pytorch/pytorch.h"
#include "lockstep/ckpt/pickle/pickle.h"

namespace lockstep::ckpt {
namespace {

Result<std::vector<internal::ArchiveRecord>> records_of(
    const Value& root,
    const WriteOptions& options) {
  LOCKSTEP_ASSIGN(
      PickledTree tree,
      write_pickle(
          root,
          {.taken_keys = internal::taken_keys(options.extra_records)}));
  return internal::pt_records(
      std::move(tree),
      options.extra_records,
      options.byteorder_record ? internal::ByteorderRecord::kLittle
                               : internal::ByteorderRecord::kNone);
}

class MemoryFile final : public WritableFile {
 public:
  explicit MemoryFile(std::string& text) : text_(text) {}

  Status write(ByteSpan bytes) override {
    text_ += as_text(bytes);
    return {};
  }
  Status write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override {
    return Error{
        .code = ErrorCode::kUnsupported,
        .op = "ckpt.save",
        .message = "bytes in memory are only appended to"};
  }
  Status sync() override {
    return {};
  }
  Status close() override {
    return {};
  }

 private:
  std::string& text_;
};

} // namespace

Result<std::string> pt_bytes(const Value& root) {
  constexpr const char* kTop = "archive"; // as Python's of a BytesIO
  LOCKSTEP_ASSIGN(const auto records, records_of(root, {}));
  std::string text;
  text.reserve(internal::archive_bytes(kTop, records));
  MemoryFile file(text);
  LOCKSTEP_TRY(internal::write_archive(file, kTop, records));
  return text;
}

Status write_pt(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs) {
  LOCKSTEP_TRY(internal::check_extra_records(options.extra_records));
  return internal::save_archive(path, records_of(root, options), options, fs);
}

} // namespace lockstep::ckpt
