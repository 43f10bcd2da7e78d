// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/memory_fs.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "lockstep/base/internal/errno_error.h"
#include "tests/support/memory_disk.h"

namespace lockstep {
namespace {

using internal::MemoryDisk;
using internal::MemoryNode;

std::string data_after(const MemoryNode& node, PowerLoss::Data data) {
  switch (data) {
    case PowerLoss::Data::kKept:
      return node.data;
    case PowerLoss::Data::kTorn: {
      // Only a file that grew can be torn so; another one goes back.
      if (!node.data.starts_with(node.durable)) {
        return node.durable;
      }
      const std::size_t sectors = node.data.size() / kSectorBytes;
      return node.data.substr(
          0,
          std::max(node.durable.size(), sectors * kSectorBytes));
    }
    case PowerLoss::Data::kLost:
      break;
  }
  return node.durable;
}

} // namespace

MemoryFs::MemoryFs() : disk_(std::make_shared<MemoryDisk>()) {}
MemoryFs::MemoryFs(MemoryFs&& other) noexcept = default;
MemoryFs& MemoryFs::operator=(MemoryFs&& other) noexcept = default;
MemoryFs::~MemoryFs() = default;

MemoryFs MemoryFs::without_locks() {
  MemoryFs fs;
  fs.disk_->has_locks = false;
  return fs;
}

MemoryFs MemoryFs::after_power_loss(const PowerLoss& loss) const {
  const std::scoped_lock lock(disk_->mutex);
  MemoryFs later;
  later.disk_->directories = disk_->directories;
  later.disk_->has_locks = disk_->has_locks;
  later.disk_->changes = disk_->changes;
  const auto& names = loss.keep_names ? disk_->names : disk_->durable_names;
  for (const auto& [path, node] : names) {
    auto copy = std::make_shared<MemoryNode>(*node);
    copy->data = data_after(*node, loss.data);
    copy->durable = copy->data;
    copy->is_locked = false;
    later.disk_->names[path] = std::move(copy);
  }
  later.disk_->durable_names = later.disk_->names;
  return later;
}

Result<FileInfo> MemoryFs::stat(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto target, disk_->follow("fs.stat", path));
  if (disk_->directories.contains(target)) {
    return FileInfo{.kind = FileInfo::Kind::kDirectory, .mode = 0755};
  }
  LOCKSTEP_ASSIGN(const auto node, disk_->find("fs.stat", path));
  return FileInfo{
      .size = node->data.size(),
      .mode = node->mode,
      .modified = node->modified};
}

Result<std::unique_ptr<ReadableFile>> MemoryFs::open_read(
    const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto node, disk_->find_file(path));
  return internal::make_memory_readable(node->data, path);
}

Result<std::shared_ptr<FileMapping>> MemoryFs::map(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto node, disk_->find_file(path));
  return internal::make_memory_mapping(node->data);
}

Result<std::unique_ptr<WritableFile>> MemoryFs::create(
    const std::string& path,
    std::uint32_t mode) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto name, disk_->name_of("fs.open", path));
  if (disk_->names.contains(name)) {
    return errno_error("fs.open", path, EEXIST);
  }
  LOCKSTEP_ASSIGN(auto node, disk_->make(path, mode));
  return internal::make_memory_writable(disk_, std::move(node));
}

Result<std::unique_ptr<WritableFile>> MemoryFs::append(
    const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  auto found = disk_->find("fs.open", path);
  if (!found) {
    found = disk_->make(path, 0644);
  }
  LOCKSTEP_ASSIGN(auto node, std::move(found));
  return internal::make_memory_writable(disk_, std::move(node));
}

Result<std::unique_ptr<WritableFile>> MemoryFs::open_update(
    const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(auto node, disk_->find_file(path));
  return internal::make_memory_update(disk_, std::move(node), path);
}

Result<std::unique_ptr<PathLock>> MemoryFs::lock_directory(
    const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(auto folder, disk_->find_directory("fs.open", path));
  return internal::make_memory_lock(disk_, std::move(folder), path);
}

Result<bool> MemoryFs::is_locked(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto node, disk_->find_file(path));
  return disk_->has_locks ? Result<bool>(node->is_locked)
                          : lock_errno_error(path, ENOLCK);
}

Status MemoryFs::check_writable(const std::string& path) {
  constexpr std::uint32_t kAnyWrite = 0222;
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto node, disk_->find_file(path));
  return (node->mode & kAnyWrite) != 0
             ? Status()
             : Status(errno_error("fs.open", path, EACCES));
}

Status MemoryFs::truncate(const std::string& path, std::uint64_t size) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto node, disk_->find("fs.truncate", path));
  node->data.resize(size);
  disk_->touch(*node);
  return {};
}

Status MemoryFs::chmod(const std::string& path, std::uint32_t mode) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto node, disk_->find("fs.chmod", path));
  node->mode = mode;
  return {};
}

Status MemoryFs::copy_metadata(const std::string& from, const std::string& to) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto source, disk_->find("fs.chmod", from));
  LOCKSTEP_ASSIGN(const auto target, disk_->find("fs.chmod", to));
  target->mode = source->mode;
  return {};
}

Status MemoryFs::symlink(const std::string& target, const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto name, disk_->name_of("fs.symlink", path));
  const bool has_folder = disk_->directories.contains(parent_directory(name));
  if (!has_folder || target.empty()) {
    return errno_error("fs.symlink", path, ENOENT);
  }
  if (disk_->names.contains(name) || disk_->directories.contains(name)) {
    return errno_error("fs.symlink", path, EEXIST);
  }
  auto node = std::make_shared<MemoryNode>();
  node->link = target;
  disk_->names[name] = std::move(node);
  return {};
}

Status MemoryFs::rename(const std::string& from, const std::string& to) {
  return move(from, to, false);
}

Status MemoryFs::rename_new(const std::string& from, const std::string& to) {
  return move(from, to, true);
}

Status
MemoryFs::move(const std::string& from, const std::string& to, bool only_new) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto entry, disk_->find_name("fs.rename", from));
  LOCKSTEP_ASSIGN(const auto name, disk_->name_of("fs.rename", to));
  const bool is_directory = disk_->directories.contains(name);
  if (only_new && (is_directory || disk_->names.contains(name))) {
    return errno_error("fs.rename", to, EEXIST);
  }
  if (is_directory) {
    return errno_error("fs.rename", to, EISDIR);
  }
  if (!disk_->directories.contains(parent_directory(name))) {
    return errno_error("fs.rename", to, ENOENT);
  }
  auto node = entry->second;
  disk_->names.erase(entry);
  disk_->names[name] = std::move(node);
  return {};
}

Status MemoryFs::remove(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto entry, disk_->find_name("fs.remove", path));
  disk_->names.erase(entry);
  return {};
}

Status MemoryFs::sync_directory(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(
      const auto folder,
      disk_->find_directory("fs.sync_directory", path));
  const auto inside = [&](const MemoryDisk::Names::value_type& entry) {
    return parent_directory(entry.first) == folder;
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
  LOCKSTEP_ASSIGN(
      std::string part,
      disk_->follow("fs.create_directories", path));
  while (!disk_->directories.contains(part)) {
    if (disk_->names.contains(part)) {
      return errno_error("fs.create_directories", path, ENOTDIR);
    }
    disk_->directories.insert(part);
    part = parent_directory(part);
  }
  return {};
}

Result<std::vector<std::string>> MemoryFs::list(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  LOCKSTEP_ASSIGN(const auto folder, disk_->find_directory("fs.list", path));
  std::vector<std::string> found;
  const auto add = [&](const std::string& candidate) {
    if (candidate != folder && parent_directory(candidate) == folder) {
      found.push_back(base_name(candidate));
    }
  };
  for (const auto& [name, node] : disk_->names) {
    add(name);
  }
  std::ranges::for_each(disk_->directories, add);
  std::ranges::sort(found);
  return found;
}

Result<std::string> MemoryFs::resolve(const std::string& path) {
  const std::scoped_lock lock(disk_->mutex);
  // Refuses a loop; then link by link, as the real file system does.
  LOCKSTEP_TRY(disk_->follow("fs.resolve", path));
  std::filesystem::path target = path;
  while (true) {
    const auto entry = disk_->find_name("fs.resolve", target.string());
    if (!entry || (*entry)->second->link.empty()) {
      return target.string();
    }
    target = target.parent_path() / (*entry)->second->link;
  }
}

Result<std::uint64_t> MemoryFs::free_space(const std::string& /*path*/) {
  return std::numeric_limits<std::uint64_t>::max();
}

} // namespace lockstep
