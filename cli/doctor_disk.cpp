// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "cli/doctor.h"
#include "lockstep/base/internal/descriptor.h"
#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

struct DiskKind {
  // As statfs(2) numbers them.
  std::uint32_t magic = 0;
  std::string_view name = {};
  bool is_remote = false;
};

// Numbers that linux/magic.h lacks are those of the file systems' own sources.
constexpr std::array kDiskKinds{
    DiskKind{EXT4_SUPER_MAGIC, "ext4"},
    DiskKind{XFS_SUPER_MAGIC, "xfs"},
    DiskKind{BTRFS_SUPER_MAGIC, "btrfs"},
    DiskKind{OVERLAYFS_SUPER_MAGIC, "overlay"},
    DiskKind{TMPFS_MAGIC, "tmpfs"},
    DiskKind{0x2FC12FC1, "zfs"},
    DiskKind{NFS_SUPER_MAGIC, "nfs", true},
    DiskKind{0xFF534D42, "cifs", true},
    DiskKind{SMB2_SUPER_MAGIC, "smb", true},
    DiskKind{CEPH_SUPER_MAGIC, "ceph", true},
    DiskKind{0x0BD00BD0, "lustre", true},
    DiskKind{0x47504653, "gpfs", true},
    DiskKind{V9FS_MAGIC, "9p", true},
    DiskKind{FUSE_SUPER_MAGIC, "fuse", true},
};

Finding disk_room(const std::string& folder) {
  struct statfs disk {};
  Finding finding{.group = "disk", .name = "room"};
  if (::statfs(folder.c_str(), &disk) != 0) {
    finding.value = "unknown";
    return finding;
  }
  const std::uint64_t free = static_cast<std::uint64_t>(disk.f_bavail) *
                             static_cast<std::uint64_t>(disk.f_bsize);
  const auto* kind = std::ranges::find(
      kDiskKinds,
      static_cast<std::uint32_t>(disk.f_type),
      &DiskKind::magic);
  const bool is_known = kind != kDiskKinds.end();
  finding.value = format(
      "{} free, {}",
      human_bytes(free),
      is_known ? std::string(kind->name)
               : format(
                     "file system {:#x}",
                     static_cast<std::uint32_t>(disk.f_type)));
  constexpr std::uint64_t kLittle = 2048 * kMiB;
  if (free < kLittle) {
    finding.health = Health::kWarning;
    finding.remedy =
        "a run keeps the best, the last and '--keep' checkpoints: choose "
        "another disk by --output, or a smaller --keep";
  } else if (is_known && kind->magic == TMPFS_MAGIC) {
    finding.health = Health::kNote;
    finding.remedy = "it is memory: what is written is gone after a restart";
  } else if (is_known && kind->is_remote) {
    finding.health = Health::kNote;
    finding.remedy = "it is not of this machine: see the time of fsync below";
  }
  return finding;
}

// A file without a name, where the file system has such; else one that is
// removed at once.
Descriptor scratch_file(const std::string& folder) {
  constexpr mode_t kOwner = 0600;
  Descriptor file(
      ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwner));
  if (!file && (errno == EOPNOTSUPP || errno == EISDIR)) {
    const std::string path =
        format("{}/.lockstep-doctor-{}", folder, ::getpid());
    file = Descriptor(
        ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kOwner));
    if (file) {
      ::unlink(path.c_str());
    }
  }
  return file;
}

// Seconds that writing 4 MiB and fsync take, the middle one of some; nothing if
// the disk refuses (errno).
std::optional<double> sync_seconds(int file) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kTimes = 5;
  const std::vector<std::byte> block(4 * kMiB, std::byte{0x5a});
  std::vector<double> seconds;
  for (std::size_t i = 0; i < kTimes; ++i) {
    const auto start = Clock::now();
    if (::pwrite(file, block.data(), block.size(), 0) !=
            static_cast<ssize_t>(block.size()) ||
        ::fsync(file) != 0) {
      return std::nullopt;
    }
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + kTimes / 2);
  return seconds[kTimes / 2];
}

Finding disk_sync(int file) {
  Finding finding{.group = "disk", .name = "fsync"};
  const std::optional<double> seconds = sync_seconds(file);
  if (!seconds) {
    finding.value = errno_error("", "", errno).message;
    finding.health = Health::kProblem;
    finding.remedy = "checkpoints cannot be written here: another --output";
    return finding;
  }
  constexpr double kMilliseconds = 1e3;
  finding.value = format("{:.1f} ms for 4 MiB", kMilliseconds * *seconds);
  constexpr double kSlow = 0.25;
  if (*seconds > kSlow) {
    finding.health = Health::kWarning;
    finding.remedy =
        "checkpoints are written beside the training, but the next one waits "
        "for the last: a faster disk by --output, or a longer "
        "--checkpoint-interval";
  }
  return finding;
}

Finding disk_locks(int file) {
  Finding finding{.group = "disk", .name = "locks", .value = "yes"};
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    finding.value = format("no ({})", errno_error("", "", errno).message);
    finding.health = Health::kWarning;
    finding.remedy =
        "nothing keeps two runs out of one folder: give each its own --output";
  }
  return finding;
}

} // namespace

Findings examine_disk(const DoctorPlaces& places) {
  Findings findings{disk_room(places.folder)};
  const Descriptor file = scratch_file(places.folder);
  if (!file) {
    findings.push_back(
        {.group = "disk",
         .name = "writing",
         .value = format(
             "{}: {}",
             escape(places.folder),
             errno_error("", "", errno).message),
         .health = Health::kProblem,
         .remedy = "'lockstep train --output DIR' with a folder that you may "
                   "write to"});
    return findings;
  }
  findings.push_back(disk_sync(file.get()));
  findings.push_back(disk_locks(file.get()));
  return findings;
}

} // namespace lockstep::cli
