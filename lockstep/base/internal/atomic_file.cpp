// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/atomic_file.h"

#include <signal.h> // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <random>

#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/internal/temporary_paths.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

// Temporary files are named .<name>.tmp.<pid>.<random>.
constexpr std::string_view kTempMark = ".tmp.";
// File names end at 255 bytes; the rest of the temporary name needs under 45.
constexpr std::size_t kMaxNameBytes = 200;

std::string temporary_path(const std::string& target) {
  std::random_device random;
  return format(
      "{}/.{}{}{}.{:08x}{:08x}",
      parent_directory(target),
      base_name(target).substr(0, kMaxNameBytes),
      kTempMark,
      static_cast<std::int64_t>(::getpid()),
      random(),
      random());
}

// The pid in the name of a temporary file of ours.
std::optional<std::int64_t> owner_of(std::string_view name) {
  const std::size_t mark = name.rfind(kTempMark);
  if (!name.starts_with('.') || mark == std::string_view::npos || mark == 0) {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(mark + kTempMark.size());
  const std::size_t dot = rest.find('.');
  const std::string_view hex =
      dot == std::string_view::npos ? "" : rest.substr(dot + 1);
  if (hex.size() != 16 ||
      hex.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  return parse_number<std::int64_t>(rest.substr(0, dot), 1);
}

// It is the folder that does not let a file be made, not the one to replace.
Error not_created(Error error) {
  if (error.detail == "E_PERMISSION") {
    error.message = format(
        "no file may be made in the folder '{}': {}",
        escape(parent_directory(error.path), 200),
        error.message);
    error.hint = "a new file is written there first, then takes the name";
  }
  return error;
}

extern "C" void lockstep_remove_temporaries(int number) {
  internal::remove_noted_temporaries();
  static_cast<void>(::raise(number)); // SA_RESETHAND: now it ends the program
}

extern "C" void lockstep_let_write_fail(int /*number*/) {}

// Removes the temporary file unless the rename has taken it away.
class Temporary {
 public:
  Temporary(FileSystem& fs, std::string path)
      : fs_(fs), path_(std::move(path)), noted_(path_) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (file_) {
      static_cast<void>(file_->close());
    }
    if (present_) {
      static_cast<void>(fs_.remove(path_));
    }
  }

  // `old`: the file to replace, if there is one.
  Status create(
      const std::string& old,
      const std::optional<std::uint32_t>& mode) {
    auto file = fs_.create(path_, mode.value_or(0666));
    if (!file) {
      return not_created(std::move(file).error());
    }
    file_ = *std::move(file);
    present_ = true;
    // The umask may have taken bits away that the old file has.
    return mode ? fs_.copy_metadata(old, path_) : Status();
  }
  [[nodiscard]] WritableFile& file() {
    return *file_;
  }
  Status close() {
    const auto file = std::move(file_);
    return file->close();
  }
  Status rename_to(const std::string& target, bool may_replace) {
    LOCKSTEP_TRY(
        may_replace ? fs_.rename(path_, target)
                    : fs_.rename_new(path_, target));
    present_ = false;
    return {};
  }

 private:
  FileSystem& fs_;
  std::string path_;
  internal::TemporaryPath noted_;
  std::unique_ptr<WritableFile> file_;
  bool present_ = false;
};

Status
check_space(FileSystem& fs, const std::string& path, std::uint64_t needed) {
  const auto free = fs.free_space(parent_directory(path));
  if (needed == 0 || !free || *free >= needed) {
    return {}; // an unknown amount is no reason to refuse
  }
  return Error{
      .code = ErrorCode::kIo,
      .op = "fs.write",
      .message = format(
          "not enough space: {} needed ({} bytes), {} free ({} bytes)",
          human_bytes(needed),
          needed,
          human_bytes(*free),
          *free),
      .hint = "free some space, or write to another disk",
      .path = path,
      .detail = "E_NO_SPACE"};
}

// The mode to give to the new file; none if there is no old one.
Result<std::optional<std::uint32_t>> mode_of_old(
    FileSystem& fs,
    const std::string& target) {
  const auto old = fs.stat(target);
  if (!old) {
    if (old.error().code == ErrorCode::kNotFound) {
      return std::optional<std::uint32_t>();
    }
    return old.error();
  }
  if (old->kind != FileInfo::Kind::kFile) {
    return Error{
        .code = ErrorCode::kIo,
        .op = "fs.write",
        .message = "what is there is not a regular file",
        .path = target,
        .detail = "E_NOT_REGULAR"};
  }
  return std::optional(old->mode);
}

// Writes, syncs and renames; what is left of a failure, ~Temporary removes.
Status replace(
    FileSystem& fs,
    Temporary& temporary,
    const std::string& target,
    const std::function<Status(WritableFile&)>& fill,
    const AtomicWriteOptions& options) {
  LOCKSTEP_ASSIGN(const auto mode, mode_of_old(fs, target));
  if (mode && !options.replace) {
    return errno_error("fs.write", target, EEXIST);
  }
  if (mode) {
    // The folder alone decides on a rename: what protects the file is kept.
    LOCKSTEP_TRY(fs.check_writable(target));
  }
  LOCKSTEP_TRY(temporary.create(target, mode));
  if (options.reserve && options.expected_bytes != 0) {
    LOCKSTEP_TRY(temporary.file().reserve(options.expected_bytes));
  }
  if (options.durable) {
    temporary.file().expect_sync();
  }
  LOCKSTEP_TRY(fill(temporary.file()));
  if (options.durable) {
    // Once only: after an error the kernel may have dropped the pages, and a
    // second call would report success for data that is gone.
    LOCKSTEP_TRY(temporary.file().sync());
  }
  LOCKSTEP_TRY(temporary.close());
  LOCKSTEP_TRY(temporary.rename_to(target, options.replace));
  return options.durable ? fs.sync_directory(parent_directory(target))
                         : Status();
}

} // namespace

Status write_file_atomically(
    FileSystem& fs,
    const std::string& path,
    const std::function<Status(WritableFile&)>& fill,
    const AtomicWriteOptions& options) {
  LOCKSTEP_ASSIGN(const std::string target, fs.resolve(path));
  LOCKSTEP_TRY(check_space(fs, target, options.expected_bytes));
  const std::string temporary_name = temporary_path(target);
  Temporary temporary(fs, temporary_name);
  Status status = replace(fs, temporary, target, fill, options);
  if (!status && status.error().path == temporary_name) {
    status.error().path = path; // the name that the user knows
  }
  return status;
}

Status write_file_atomically(
    FileSystem& fs,
    const std::string& path,
    std::string_view bytes,
    const AtomicWriteOptions& options) {
  AtomicWriteOptions sized = options;
  sized.expected_bytes = bytes.size();
  return write_file_atomically(
      fs,
      path,
      [bytes](WritableFile& file) { return file.write(as_byte_span(bytes)); },
      sized);
}

Status replace_link(
    FileSystem& fs,
    const std::string& target,
    const std::string& path) {
  const std::string name = temporary_path(path);
  Status status = fs.symlink(target, name);
  if (!status) {
    status.error().path = path; // the name that the user knows
    return status;
  }
  status = fs.rename(name, path);
  if (!status) {
    static_cast<void>(fs.remove(name));
    return status;
  }
  return fs.sync_directory(parent_directory(path));
}

void remove_temporaries_on_signals() {
  struct sigaction action = {};
  action.sa_handler = lockstep_remove_temporaries;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction old = {};
    ::sigaction(number, nullptr, &old);
    if (old.sa_handler == SIG_DFL) {
      ::sigaction(number, &action, nullptr);
    }
  }
  struct sigaction oversize = {};
  ::sigaction(SIGXFSZ, nullptr, &oversize);
  if (oversize.sa_handler == SIG_DFL) {
    // Not ignored: programs that this one starts would inherit that.
    oversize.sa_handler = lockstep_let_write_fail;
    ::sigaction(SIGXFSZ, &oversize, nullptr);
  }
}

bool is_process_alive(std::int64_t pid) {
  if (pid > std::numeric_limits<pid_t>::max() ||
      (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)) {
    return false;
  }
  std::ifstream file(format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line); // "PID (NAME) STATE ...", a name may have brackets
  const std::size_t state = line.rfind(") ");
  return state == std::string::npos || line.substr(state + 2, 1) != "Z";
}

bool is_temporary_name(std::string_view name) {
  return owner_of(name).has_value();
}

Result<std::vector<std::string>> remove_stale_temporaries(
    FileSystem& fs,
    const std::string& directory,
    const std::function<bool(std::int64_t pid)>& is_alive) {
  LOCKSTEP_ASSIGN(const auto names, fs.list(directory));
  std::vector<std::string> removed;
  for (const std::string& name : names) {
    const auto owner = owner_of(name);
    if (!owner || (is_alive ? is_alive(*owner) : is_process_alive(*owner))) {
      continue;
    }
    LOCKSTEP_TRY(fs.remove(format("{}/{}", directory, name)));
    removed.push_back(name);
  }
  return removed;
}

} // namespace lockstep
