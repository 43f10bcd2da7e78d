// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/unpacked/unpacked_reader.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/range_storage.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/archive/byteorder.h"
#include "lockstep/ckpt/pickle/allow_list.h"
#include "lockstep/ckpt/pickle/old_variables.h"
#include "lockstep/ckpt/pickle/pickle_stream.h"
#include "lockstep/ckpt/pickle/storage_id.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

constexpr const char* kPickle = "data.pkl";

// Keys are decimal numbers in every file PyTorch writes. As part of a path
// nothing else will do.
bool is_number(std::string_view key) {
  constexpr std::size_t kMaxDigits = 20;
  return !key.empty() && key.size() <= kMaxDigits &&
         key.find_first_not_of("0123456789") == std::string_view::npos;
}

// A file that is opened when its bytes are asked for.
class FileStorage final : public StorageSource {
 public:
  FileStorage(std::string path, std::uint64_t nbytes, const ReadInput& input)
      : path_(std::move(path)),
        nbytes_(nbytes),
        use_mmap_(input.options.use_mmap),
        fs_(input.fs) {}

  Result<ByteSpan> load() override {
    LOCKSTEP_TRY(open());
    return bytes_->load();
  }

  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    LOCKSTEP_TRY(open());
    return bytes_->view(offset, length, scratch);
  }

  Status stream(const BlockVisitor& visit) override {
    LOCKSTEP_TRY(open());
    return bytes_->stream(visit);
  }

 private:
  Status open() {
    const std::scoped_lock lock(mutex_);
    if (bytes_ == nullptr) {
      LOCKSTEP_ASSIGN(
          auto source,
          open_source(path_, {.use_mmap = use_mmap_}, *fs_));
      bytes_ = make_range_storage(std::move(source), 0, nbytes_);
    }
    return {};
  }

  std::string path_;
  std::uint64_t nbytes_;
  bool use_mmap_;
  FileSystem* fs_;
  std::mutex mutex_;
  std::shared_ptr<StorageSource> bytes_;
};

class FolderStorages final : public PersistentIdHandler {
 public:
  FolderStorages(std::string folder, const ReadInput& input)
      : folder_(std::move(folder)), input_(&input) {}

  Result<Value> resolve(const Value& id) override {
    LOCKSTEP_ASSIGN(const StorageId parsed, read_storage_id(id));
    const std::string record = format("data/{}", parsed.key);
    if (!is_number(parsed.key)) {
      return corrupt_file(
          "E_NAME",
          format("storage key '{}' is not a number", escape(parsed.key)),
          "");
    }
    auto& storage = by_key_[std::string(parsed.key)];
    if (storage == nullptr) {
      LOCKSTEP_ASSIGN(storage, open(parsed, id, record));
      storages.push_back(storage);
    }
    LOCKSTEP_ASSIGN(
        auto again,
        in_record(named_again(parsed, id, storage), record));
    if (again != storage) {
      storages.push_back(again);
    }
    return Value(std::move(again));
  }

  /// In the order of first use.
  std::vector<std::shared_ptr<Storage>> storages = {};
  std::vector<Warning> warnings = {};
  /// Units: bytes of all files.
  std::uint64_t bytes = 0;

 private:
  Result<std::shared_ptr<Storage>>
  open(const StorageId& parsed, const Value& id, const std::string& record) {
    const std::string path = folder_ + "/" + record;
    const auto info = input_->fs->stat(path);
    if (!info || info->kind != FileInfo::Kind::kFile) {
      return corrupt_file("E_NO_STORAGE", "the file is missing", record);
    }
    if (info->size < parsed.nbytes) {
      return corrupt_file(
          "E_STORAGE_SHORT",
          format(
              "the file is truncated; expected {} bytes, got {}",
              parsed.nbytes,
              info->size),
          record);
    }
    if (info->size > parsed.nbytes) {
      warnings.push_back(
          {.name = "W_STORAGE_LONG",
           .text = format(
               "file {} has {} bytes, its storage {}",
               record,
               info->size,
               parsed.nbytes)});
    }
    bytes += info->size;
    add_file(input_->options.limits, info->size);
    auto storage = make_storage(parsed, id);
    storage->source =
        std::make_shared<FileStorage>(path, parsed.nbytes, *input_);
    return storage;
  }

  std::string folder_;
  const ReadInput* input_;
  std::map<std::string, std::shared_ptr<Storage>> by_key_;
};

bool is_file(const ReadInput& input, const std::string& path) {
  const auto info = input.fs->stat(path);
  return info && info->kind == FileInfo::Kind::kFile;
}

// The folder itself or the only one inside it; empty if neither has a pickle.
std::string folder_of(const ReadInput& input) {
  if (is_file(input, input.path + "/" + kPickle)) {
    return input.path;
  }
  const auto names = input.fs->list(input.path);
  if (names && names->size() == 1) {
    const std::string inner = input.path + "/" + names->front();
    return is_file(input, inner + "/" + kPickle) ? inner : "";
  }
  return "";
}

// Of a small file; nothing if there is none, as in `read_zip`.
std::optional<std::string> record_text(
    const ReadInput& input,
    const std::string& path) {
  auto text = read_text(*input.fs, path);
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

} // namespace

Result<bool> claims_unpacked(const ReadInput& input) {
  return input.source == nullptr && input.fs != nullptr &&
         !folder_of(input).empty();
}

Result<Checkpoint> read_unpacked(const ReadInput& input) {
  const std::string folder = folder_of(input);
  Checkpoint file{
      .format = "zip-folder",
      .archive_name = base_name(folder),
      .era = "torch 1.6 or newer",
      .crc = CrcState::kAbsent};
  LOCKSTEP_TRY(note_byteorder(
      file,
      record_text(input, folder + "/byteorder"),
      input.options));
  LOCKSTEP_ASSIGN(
      auto source,
      open_source(
          folder + "/" + kPickle,
          {.use_mmap = input.options.use_mmap},
          *input.fs));
  add_file(input.options.limits, source->size());
  FolderStorages storages(folder, input);
  PickleStream stream(source, 0, input.options.limits);
  LOCKSTEP_ASSIGN(
      PickleResult pickle,
      in_record(stream.next(&storages), kPickle));
  file.root = std::move(pickle.root);
  modernize_variables(file.root, pickle.globals);
  file.file_bytes = source->size() + storages.bytes;
  file.globals = std::move(pickle.globals);
  file.storages = std::move(storages.storages);
  for (auto* warnings : {&pickle.warnings, &storages.warnings}) {
    std::ranges::move(*warnings, std::back_inserter(file.warnings));
  }
  LOCKSTEP_TRY(turn_storages(file));
  LOCKSTEP_TRY(check_allow_list(file, input.options, kPickle));
  return file;
}

} // namespace lockstep::ckpt
