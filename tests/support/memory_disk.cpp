// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/memory_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "lockstep/base/internal/errno_error.h"

namespace lockstep::internal {
namespace {

class MemoryMapping final : public FileMapping {
 public:
  explicit MemoryMapping(std::string data) : data_(std::move(data)) {}
  [[nodiscard]] ByteSpan bytes() const override {
    return as_byte_span(data_);
  }

 private:
  std::string data_;
};

class MemoryReadableFile final : public ReadableFile {
 public:
  MemoryReadableFile(std::string data, std::string path)
      : data_(std::move(data)), path_(std::move(path)) {}
  [[nodiscard]] std::uint64_t size() const override {
    return data_.size();
  }
  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset > data_.size() || out.size() > data_.size() - offset) {
      return Error{
          .code = ErrorCode::kCorrupt,
          .op = "fs.read",
          .message = "the file ends too early",
          .path = path_,
          .offset = data_.size(),
          .detail = "E_TRUNCATED"};
    }
    if (!out.empty()) {
      std::memcpy(out.data(), data_.data() + offset, out.size());
    }
    return {};
  }

 private:
  std::string data_;
  std::string path_;
};

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(
      std::shared_ptr<MemoryDisk> disk,
      std::shared_ptr<MemoryNode> node,
      bool has_lock,
      std::optional<Error> missing_lock = {})
      : disk_(std::move(disk)),
        node_(std::move(node)),
        has_lock_(has_lock),
        missing_lock_(std::move(missing_lock)) {}
  MemoryWritableFile(const MemoryWritableFile&) = delete;
  MemoryWritableFile& operator=(const MemoryWritableFile&) = delete;
  ~MemoryWritableFile() override {
    unlock();
  }
  Status write(ByteSpan bytes) override {
    const std::scoped_lock lock(disk_->mutex);
    node_->data.append(as_text(bytes));
    disk_->touch(*node_);
    return {};
  }
  Status write_at(std::uint64_t offset, ByteSpan bytes) override {
    const std::scoped_lock lock(disk_->mutex);
    if (bytes.empty()) {
      return {}; // does not make a file longer, wherever it is
    }
    std::string& data = node_->data;
    data.resize(std::max<std::size_t>(data.size(), offset + bytes.size()));
    std::ranges::copy(
        as_text(bytes),
        data.begin() + static_cast<std::ptrdiff_t>(offset));
    disk_->touch(*node_);
    return {};
  }
  Status sync() override {
    const std::scoped_lock lock(disk_->mutex);
    node_->durable = node_->data;
    return {};
  }
  Status close() override {
    unlock();
    return {};
  }
  [[nodiscard]] const Error* missing_lock() const override {
    return missing_lock_ ? &*missing_lock_ : nullptr;
  }

 private:
  void unlock() {
    if (std::exchange(has_lock_, false)) {
      const std::scoped_lock lock(disk_->mutex);
      node_->is_locked = false;
    }
  }

  std::shared_ptr<MemoryDisk> disk_;
  std::shared_ptr<MemoryNode> node_;
  bool has_lock_;
  std::optional<Error> missing_lock_;
};

// Of a folder that cannot be locked.
class NoLock final : public PathLock {
 public:
  explicit NoLock(Error missing) : missing_(std::move(missing)) {}
  [[nodiscard]] const Error* missing_lock() const override {
    return &missing_;
  }

 private:
  Error missing_;
};

class MemoryDirectoryLock final : public PathLock {
 public:
  MemoryDirectoryLock(std::shared_ptr<MemoryDisk> disk, std::string folder)
      : disk_(std::move(disk)), folder_(std::move(folder)) {}
  MemoryDirectoryLock(const MemoryDirectoryLock&) = delete;
  MemoryDirectoryLock& operator=(const MemoryDirectoryLock&) = delete;
  ~MemoryDirectoryLock() override {
    const std::scoped_lock lock(disk_->mutex);
    disk_->locked.erase(folder_);
  }

 private:
  std::shared_ptr<MemoryDisk> disk_;
  std::string folder_;
};

// The outermost link that `path` (in normal form) goes through.
MemoryDisk::Names::const_iterator first_link(
    const MemoryDisk::Names& names,
    const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const auto found = names.find(path.substr(0, end));
    if (found != names.end() && !found->second->link.empty()) {
      return found;
    }
    if (end == std::string::npos) {
      return names.end();
    }
  }
}

} // namespace

std::string MemoryDisk::normal(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  if (text.size() > 1 && text.ends_with('/')) {
    text.pop_back();
  }
  return text;
}

Result<std::string> MemoryDisk::follow(
    std::string_view op,
    const std::string& path) const {
  constexpr int kMaxLinks = 40;
  std::string target = normal(path);
  for (int i = 0; i <= kMaxLinks; ++i) {
    const auto link = first_link(names, target);
    if (link == names.end()) {
      return target;
    }
    const std::filesystem::path folder = parent_directory(link->first);
    target = normal(
        (folder / link->second->link).string() +
        target.substr(link->first.size()));
  }
  return errno_error(op, path, ELOOP);
}

Result<std::string> MemoryDisk::name_of(
    std::string_view op,
    const std::string& path) const {
  const std::string name = normal(path);
  LOCKSTEP_ASSIGN(const auto folder, follow(op, parent_directory(name)));
  return normal(folder + "/" + base_name(name));
}

Result<std::string> MemoryDisk::find_directory(
    std::string_view op,
    const std::string& path) const {
  LOCKSTEP_ASSIGN(std::string target, follow(op, path));
  if (!directories.contains(target)) {
    return errno_error(op, path, ENOENT);
  }
  return target;
}

Result<std::shared_ptr<MemoryNode>> MemoryDisk::find(
    std::string_view op,
    const std::string& path) const {
  LOCKSTEP_ASSIGN(const std::string target, follow(op, path));
  const auto found = names.find(target);
  if (found != names.end()) {
    return found->second;
  }
  return errno_error(op, path, directories.contains(target) ? EISDIR : ENOENT);
}

// A directory is the caller's mistake, no failure of the system.
Result<std::shared_ptr<MemoryNode>> MemoryDisk::find_file(
    const std::string& path) const {
  auto node = find("fs.open", path);
  if (!node && node.error().detail == "E_NOT_REGULAR") {
    node.error().code = ErrorCode::kUnsupported;
  }
  return node;
}

Result<MemoryDisk::Names::iterator> MemoryDisk::find_name(
    std::string_view op,
    const std::string& path) {
  LOCKSTEP_ASSIGN(const std::string name, name_of(op, path));
  const auto found = names.find(name);
  if (found != names.end()) {
    return found;
  }
  return errno_error(op, path, directories.contains(name) ? EISDIR : ENOENT);
}

Result<std::shared_ptr<MemoryNode>> MemoryDisk::make(
    const std::string& path,
    std::uint32_t mode) {
  LOCKSTEP_ASSIGN(const std::string target, follow("fs.open", path));
  if (!directories.contains(parent_directory(target))) {
    return errno_error("fs.open", path, ENOENT);
  }
  if (directories.contains(target)) {
    return errno_error("fs.open", path, EISDIR);
  }
  auto node = std::make_shared<MemoryNode>();
  node->mode = mode;
  touch(*node);
  names[target] = node;
  return node;
}

std::unique_ptr<ReadableFile> make_memory_readable(
    std::string data,
    std::string path) {
  return std::make_unique<MemoryReadableFile>(std::move(data), std::move(path));
}

std::shared_ptr<FileMapping> make_memory_mapping(std::string data) {
  return std::make_shared<MemoryMapping>(std::move(data));
}

std::unique_ptr<WritableFile> make_memory_writable(
    std::shared_ptr<MemoryDisk> disk,
    std::shared_ptr<MemoryNode> node) {
  return std::make_unique<MemoryWritableFile>(
      std::move(disk),
      std::move(node),
      false);
}

Result<std::unique_ptr<WritableFile>> make_memory_update(
    std::shared_ptr<MemoryDisk> disk,
    std::shared_ptr<MemoryNode> node,
    const std::string& path) {
  if (!disk->has_locks) {
    return std::unique_ptr<WritableFile>(std::make_unique<MemoryWritableFile>(
        std::move(disk),
        std::move(node),
        false,
        lock_errno_error(path, ENOLCK)));
  }
  if (std::exchange(node->is_locked, true)) {
    return locked_error("file", path);
  }
  return std::unique_ptr<WritableFile>(std::make_unique<MemoryWritableFile>(
      std::move(disk),
      std::move(node),
      true));
}

Result<std::unique_ptr<PathLock>> make_memory_lock(
    std::shared_ptr<MemoryDisk> disk,
    std::string folder,
    const std::string& path) {
  if (!disk->has_locks) {
    return std::unique_ptr<PathLock>(
        std::make_unique<NoLock>(lock_errno_error(path, ENOLCK)));
  }
  if (!disk->locked.insert(folder).second) {
    return locked_error("folder", path);
  }
  return std::unique_ptr<PathLock>(std::make_unique<MemoryDirectoryLock>(
      std::move(disk),
      std::move(folder)));
}

} // namespace lockstep::internal
