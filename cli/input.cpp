// SPDX-License-Identifier: BSD-3-Clause
#include "cli/input.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "cli/usage_errors.h"

namespace lockstep::cli {
namespace {

Result<std::string> read_stdin() {
  static bool was_read = false; // it does not come twice
  if (std::exchange(was_read, true)) {
    return usage_error(
        "standard input is named twice",
        "name a file for one of them");
  }
  std::string bytes;
  std::array<char, 1 << 16> block{};
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return Error{
          .code = ErrorCode::kIo,
          .op = "cli.read",
          .message = "standard input cannot be read"};
    }
    if (count == 0) {
      return bytes;
    }
    bytes.append(block.data(), static_cast<std::size_t>(count));
  }
}

// Lives as long as a source over it: values are read after their Input.
class StandardInput final : public FileMapping {
 public:
  explicit StandardInput(std::string bytes) : bytes_(std::move(bytes)) {}

  [[nodiscard]] ByteSpan bytes() const override {
    return as_byte_span(bytes_);
  }

 private:
  const std::string bytes_;
};

} // namespace

Result<Input> Input::open(const std::string& file) {
  Input input;
  if (file == "-") {
    input.name_ = "standard input";
    LOCKSTEP_ASSIGN(std::string bytes, read_stdin());
    input.source_ =
        ckpt::make_source(std::make_shared<StandardInput>(std::move(bytes)));
    return input;
  }
  input.name_ = file;
  input.is_file_ = true;
  const auto info = real_fs().stat(file);
  if (info && info->kind == FileInfo::Kind::kDirectory) {
    return input; // the readers of folders decide
  }
  LOCKSTEP_ASSIGN(input.source_, ckpt::open_source(file, {.use_mmap = false}));
  return input;
}

// With its path, so that files beside it are found.
Result<ckpt::Checkpoint> Input::load_any(
    const ckpt::LoadOptions& options) const {
  if (source_ == nullptr) {
    return ckpt::load(name_, options);
  }
  return is_file_ ? ckpt::load(source_, name_, options, real_fs())
                  : ckpt::load(source_, name_, options);
}

Result<ckpt::Checkpoint> Input::load(const ckpt::LoadOptions& options) const {
  auto file = load_any(options);
  // To take a tree of many nodes apart is a quarter of a command's time, and
  // the program ends then: its first tree stays. The others go, lest those of
  // many files pile up.
  static auto& first = *new ckpt::Value();
  if (file && first.is_none()) {
    first = file->root;
  }
  return file;
}

} // namespace lockstep::cli
