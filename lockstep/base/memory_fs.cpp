// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/memory_fs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "lockstep/base/errno_error.h"

namespace lockstep {
namespace {

struct Inode {
  std::string data = {};
  // As of the last sync; what was never synced is an empty file.
  std::string durable = {};
  std::uint32_t mode = 0644;
};

using Names = std::map<std::string, std::shared_ptr<Inode>>;

std::string normal(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  if (text.size() > 1 && text.ends_with('/')) {
    text.pop_back();
  }
  return text;
}

std::string data_after(const Inode& inode, PowerLoss::Data data) {
  switch (data) {
    case PowerLoss::Data::kKept:
      return inode.data;
    case PowerLoss::Data::kTorn: {
      // Only a file that grew can be torn so; another one goes back.
      if (!inode.data.starts_with(inode.durable)) {
        return inode.durable;
      }
      const std::size_t sectors = inode.data.size() / kSectorBytes;
      return inode.data.substr(
          0,
          std::max(inode.durable.size(), sectors * kSectorBytes));
    }
    case PowerLoss::Data::kLost:
      break;
  }
  return inode.durable;
}

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

} // namespace

/// State shared by the file system and its open files.
class MemoryFs::Disk {
 public:
  class File final : public WritableFile {
   public:
    File(std::shared_ptr<Disk> disk, std::shared_ptr<Inode> inode)
        : disk_(std::move(disk)), inode_(std::move(inode)) {}
    Status write(ByteSpan bytes) override {
      const std::scoped_lock lock(disk_->mutex);
      inode_->data.append(as_text(bytes));
      return {};
    }
    Status write_at(std::uint64_t offset, ByteSpan bytes) override {
      const std::scoped_lock lock(disk_->mutex);
      if (bytes.empty()) {
        return {}; // does not make a file longer, wherever it is
      }
      std::string& data = inode_->data;
      data.resize(std::max<std::size_t>(data.size(), offset + bytes.size()));
      std::ranges::copy(
          as_text(bytes),
          data.begin() + static_cast<std::ptrdiff_t>(offset));
      return {};
    }
    Status sync() override {
      const std::scoped_lock lock(disk_->mutex);
      inode_->durable = inode_->data;
      return {};
    }
    Status close() override {
      return {};
    }

   private:
    std::shared_ptr<Disk> disk_;
    std::shared_ptr<Inode> inode_;
  };

  [[nodiscard]] bool is_directory(const std::string& path) const {
    return directories.contains(path);
  }

  Result<std::shared_ptr<Inode>> find(
      std::string_view op,
      const std::string& path) const {
    const auto found = names.find(normal(path));
    if (found != names.end()) {
      return found->second;
    }
    return errno_error(op, path, is_directory(normal(path)) ? EISDIR : ENOENT);
  }

  // To read it: a directory is the caller's mistake, no failure of the system.
  Result<std::shared_ptr<Inode>> find_file(const std::string& path) const {
    auto inode = find("fs.open", path);
    if (!inode && inode.error().detail == "E_NOT_REGULAR") {
      inode.error().code = ErrorCode::kUnsupported;
    }
    return inode;
  }

  Result<std::shared_ptr<Inode>> make(
      const std::string& path,
      std::uint32_t mode) {
    if (!is_directory(normal(parent_directory(path)))) {
      return errno_error("fs.open", path, ENOENT);
    }
    if (is_directory(normal(path))) {
      return errno_error("fs.open", path, EISDIR);
    }
    auto inode = std::make_shared<Inode>();
    inode->mode = mode;
    names[normal(path)] = inode;
    return inode;
  }

  mutable std::mutex mutex;
  Names names;
  Names durable_names;
  std::set<std::string> directories{".", "/"};
};

MemoryFs::MemoryFs() : disk_(std::make_shared<Disk>()) {}
MemoryFs::MemoryFs(MemoryFs&& other) noexcept = default;
MemoryFs& MemoryFs::operator=(MemoryFs&& other) noexcept = default;
MemoryFs::~MemoryFs() = default;

MemoryFs MemoryFs::after_power_loss(const PowerLoss& loss) const {
  const std::scoped_lock lock(disk_->mutex);
  MemoryFs later;
  later.disk_->directories = disk_->directories;
  const Names& names = loss.keep_names ? disk_->names : disk_->durable_names;
  for (const auto& [path, inode] : names) {
    auto copy = std::make_shared<Inode>(*inode);
    copy->data = data_after(*inode, loss.data);
    copy->durable = copy->data;
    later.disk_->names[path] = std::move(copy);
  }
  later.disk_->durable_names = later.disk_->names;
  return later;
}

Result<FileInfo> MemoryFs::stat(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  if (disk_->is_directory(normal(path))) {
    return FileInfo{.kind = FileInfo::Kind::kDirectory, .mode = 0755};
  }
  LOCKSTEP_ASSIGN(const auto inode, disk_->find("fs.stat", path));
  return FileInfo{.size = inode->data.size(), .mode = inode->mode};
}

Result<std::unique_ptr<ReadableFile>> MemoryFs::open_read(
    const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto inode, disk_->find_file(path));
  return std::unique_ptr<ReadableFile>(
      std::make_unique<MemoryReadableFile>(inode->data, path));
}

Result<std::shared_ptr<FileMapping>> MemoryFs::map(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto inode, disk_->find_file(path));
  return std::shared_ptr<FileMapping>(
      std::make_shared<MemoryMapping>(inode->data));
}

Result<std::unique_ptr<WritableFile>> MemoryFs::create(
    const std::string& path,
    std::uint32_t mode) {
  const std::scoped_lock lock(disk_->mutex);
  if (disk_->names.contains(normal(path))) {
    return errno_error("fs.open", path, EEXIST);
  }
  LOCKSTEP_ASSIGN(auto inode, disk_->make(path, mode));
  return std::unique_ptr<WritableFile>(
      std::make_unique<Disk::File>(disk_, std::move(inode)));
}

Result<std::unique_ptr<WritableFile>> MemoryFs::append(
    const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  auto found = disk_->find("fs.open", path);
  if (!found) {
    found = disk_->make(path, 0644);
  }
  LOCKSTEP_ASSIGN(auto inode, std::move(found));
  return std::unique_ptr<WritableFile>(
      std::make_unique<Disk::File>(disk_, std::move(inode)));
}

Result<std::unique_ptr<WritableFile>> MemoryFs::open_update(
    const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(auto inode, disk_->find("fs.open", path));
  return std::unique_ptr<WritableFile>(
      std::make_unique<Disk::File>(disk_, std::move(inode)));
}

Status MemoryFs::truncate(const std::string& path, std::uint64_t size) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto inode, disk_->find("fs.truncate", path));
  inode->data.resize(size);
  return {};
}

Status MemoryFs::chmod(const std::string& path, std::uint32_t mode) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto inode, disk_->find("fs.chmod", path));
  inode->mode = mode;
  return {};
}

Status MemoryFs::copy_permissions(
    const std::string& from,
    const std::string& to) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto source, disk_->find("fs.chmod", from));
  LOCKSTEP_ASSIGN(const auto target, disk_->find("fs.chmod", to));
  target->mode = source->mode;
  return {};
}

Status MemoryFs::rename(const std::string& from, const std::string& to) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(auto inode, disk_->find("fs.rename", from));
  if (disk_->is_directory(normal(to)) ||
      !disk_->is_directory(normal(parent_directory(to)))) {
    return errno_error(
        "fs.rename",
        to,
        disk_->is_directory(normal(to)) ? EISDIR : ENOENT);
  }
  disk_->names.erase(normal(from));
  disk_->names[normal(to)] = std::move(inode);
  return {};
}

Status MemoryFs::remove(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_TRY(disk_->find("fs.remove", path));
  disk_->names.erase(normal(path));
  return {};
}

Status MemoryFs::sync_directory(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  if (!disk_->is_directory(normal(path))) {
    return errno_error("fs.sync_directory", path, ENOENT);
  }
  const auto inside = [&](const Names::value_type& entry) {
    return normal(parent_directory(entry.first)) == normal(path);
  };
  std::erase_if(disk_->durable_names, inside);
  std::ranges::copy_if(
      disk_->names,
      std::inserter(disk_->durable_names, disk_->durable_names.end()),
      inside);
  return {};
}

Status MemoryFs::create_directories(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  std::string part = normal(path);
  while (!disk_->is_directory(part)) {
    if (disk_->names.contains(part)) {
      return errno_error("fs.create_directories", path, ENOTDIR);
    }
    disk_->directories.insert(part);
    part = normal(parent_directory(part));
  }
  return {};
}

Result<std::vector<std::string>> MemoryFs::list(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  if (!disk_->is_directory(normal(path))) {
    return errno_error("fs.list", path, ENOENT);
  }
  std::vector<std::string> found;
  const auto add = [&](const std::string& candidate) {
    if (candidate != normal(path) &&
        normal(parent_directory(candidate)) == normal(path)) {
      found.push_back(base_name(candidate));
    }
  };
  for (const auto& [name, inode] : disk_->names) {
    add(name);
  }
  std::ranges::for_each(disk_->directories, add);
  std::ranges::sort(found);
  return found;
}

Result<std::string> MemoryFs::resolve(const std::string& path) {
  return path;
}

Result<std::uint64_t> MemoryFs::free_space(const std::string& /*path*/) {
  return std::numeric_limits<std::uint64_t>::max();
}

} // namespace lockstep
