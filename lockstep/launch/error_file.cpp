// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/error_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include <cxxabi.h>
#include <execinfo.h>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/internal/options.h"

namespace lockstep::launch {
namespace {

constexpr int kMaxFrames = 64;
constexpr std::array kFatalSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Set once, before a handler can run; never freed.
struct Installed {
  std::string path = {};
  std::string temporary = {};
  std::terminate_handler terminate = nullptr;
};
Installed* installed = nullptr; // NOLINT(*-non-const-global-variables)
// The first error counts, and others wait until it is told: they would end the
// process meanwhile. 0: there is none yet.
std::atomic<::pid_t> writer = 0; // NOLINT(*-non-const-global-variables)
std::atomic<bool> is_told = false; // NOLINT(*-non-const-global-variables)

// To be called from handlers, too.
struct Telling {
  Telling() {
    ::pid_t before = 0;
    is_first = writer.compare_exchange_strong(before, ::gettid());
    // Not the writer itself, if it fails meanwhile; and for 10 s at most: it
    // may wait for a lock that this thread holds.
    constexpr int kPolls = 1000;
    for (int i = 0; !is_first && before != ::gettid() && !is_told && i < kPolls;
         ++i) {
      ::poll(nullptr, 0, 10);
    }
  }
  ~Telling() {
    if (is_first) {
      is_told = true;
    }
  }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

  bool is_first = false;
};

const char* error_file_path() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the header says when to call
  const char* const path = std::getenv("TORCHELASTIC_ERROR_FILE");
  return path == nullptr || *path == '\0' ? nullptr : path;
}

std::uintptr_t as_number(const void* address) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): to print it
  return reinterpret_cast<std::uintptr_t>(address);
}

std::string hex(std::uintptr_t number) {
  std::array<char, 16> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return "0x" + std::string(digits.data(), end.ptr);
}

// "#3 lockstep::Trainer::run(...) (train+0x1234)"; in a program that is linked
// statically only the address.
std::string frame_text(int number, void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    return format("#{} {}", number, hex(as_number(address)));
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      info.dli_sname == nullptr
          ? nullptr
          : abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status),
      &std::free);
  const char* const symbol =
      name != nullptr ? name.get()
                      : (info.dli_sname == nullptr ? "?" : info.dli_sname);
  return format(
      "#{} {} ({}+{})",
      number,
      symbol,
      base_name(info.dli_fname),
      hex(as_number(address) - as_number(info.dli_fbase)));
}

std::string stack_text() {
  std::array<void*, kMaxFrames> frames{};
  const int count = ::backtrace(frames.data(), kMaxFrames);
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "\n" + frame_text(i, frames[static_cast<std::size_t>(i)]);
  }
  return text;
}

bool is_follow_on(const std::exception& error) {
  const auto* const ours = dynamic_cast<const Exception*>(&error);
  if (ours == nullptr) {
    return false;
  }
  const Error& told = ours->error();
  const bool is_wait =
      told.code == ErrorCode::kUnavailable || told.code == ErrorCode::kTimeout;
  return told.detail == "E_OTHER_RANK" ||
         (is_wait && told.op.starts_with("dist."));
}

// As torchrun reads it: it shows `py_callstack` and sorts by the timestamp.
std::string
file_text(const std::string& what, const std::string& stack, bool follows) {
  const std::time_t now = std::time(nullptr) + (follows ? 1 : 0);
  return Json::object()
             .set(
                 "message",
                 Json::object()
                     .set("message", what)
                     .set(
                         "extraInfo",
                         Json::object()
                             .set("py_callstack", what + stack)
                             .set("timestamp", std::to_string(now))
                             .set("follow_on", follows)))
             .dump() +
         "\n";
}

// Beside, then renamed: torchrun breaks on half a file.
void write_text(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  FileSystem& fs = real_fs();
  static_cast<void>(fs.remove(temporary));
  auto file = fs.create(temporary, 0644);
  if (file && (*file)->write(as_byte_span(text)) && (*file)->close()) {
    static_cast<void>(fs.rename(temporary, path));
  }
}

void write_once(
    const std::string& what,
    const std::string& stack,
    bool follows) {
  const char* const path = error_file_path();
  if (path == nullptr) {
    return;
  }
  const Telling telling;
  if (telling.is_first) {
    write_text(path, file_text(what, stack, follows));
  }
}

[[noreturn]] void on_terminate() {
  std::string what = "std::terminate was called";
  bool follows = false;
  if (const std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::exception& error) {
      what = error.what();
      follows = is_follow_on(error);
    } catch (...) {
      what = "an exception that is no std::exception";
    }
  }
  write_once(what, stack_text(), follows);
  installed->terminate();
  std::abort();
}

// Room for a line that is built in a signal handler.
class SafeText {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      // Quotes and control characters would end the JSON string.
      const bool is_plain = c >= ' ' && c != '"' && c != '\\';
      add_mark({is_plain ? &c : "?", 1});
    }
  }
  // As it is: JSON's own marks.
  void add_mark(std::string_view text) {
    for (const char c : text) {
      if (size_ < text_.size()) {
        text_[size_++] = c;
      }
    }
  }
  void add_number(std::uint64_t value, unsigned base) {
    std::array<char, 20> digits{};
    std::size_t first = digits.size();
    do {
      digits[--first] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    add({&digits[first], digits.size() - first});
  }
  [[nodiscard]] std::string_view text() const {
    return {text_.data(), size_};
  }

 private:
  // A frame needs some hundred bytes; the marks at the end must fit, too.
  std::array<char, 1U << 16U> text_{};
  std::size_t size_ = 0;
};
SafeText signal_text; // NOLINT(*-non-const-global-variables): for a handler

void add_frame(int number, void* address) {
  constexpr std::size_t kMaxName = 700;
  Dl_info info{};
  signal_text.add_mark("\\n#");
  signal_text.add_number(static_cast<std::uint64_t>(number), 10);
  signal_text.add(" ");
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    signal_text.add("0x");
    signal_text.add_number(as_number(address), 16);
    return;
  }
  const std::string_view symbol =
      info.dli_sname == nullptr ? "?" : info.dli_sname;
  const std::string_view file = info.dli_fname;
  signal_text.add(symbol.substr(0, kMaxName));
  signal_text.add(" (");
  signal_text.add(file.substr(file.rfind('/') + 1));
  signal_text.add("+0x");
  signal_text.add_number(as_number(address) - as_number(info.dli_fbase), 16);
  signal_text.add(")");
}

// No memory is taken here. dladdr is not on POSIX's list of safe calls; glibc's
// takes a lock that only a crash inside the loader would hold.
void write_from_signal(int number) {
  std::array<void*, kMaxFrames> frames{};
  const int count = ::backtrace(frames.data(), kMaxFrames);
  const char* const name = ::sigabbrev_np(number);
  const auto add_name = [name] {
    signal_text.add("killed by SIG");
    signal_text.add(name == nullptr ? "?" : name);
  };
  signal_text.add_mark(R"({"message": {"message": ")");
  add_name();
  signal_text.add_mark(R"(", "extraInfo": {"py_callstack": ")");
  add_name();
  for (int i = 0; i < count; ++i) {
    add_frame(i, frames[static_cast<std::size_t>(i)]);
  }
  signal_text.add_mark(R"(", "timestamp": ")");
  signal_text.add_number(static_cast<std::uint64_t>(::time(nullptr)), 10);
  signal_text.add_mark("\"}}}\n");
  const int file = ::open(
      installed->temporary.c_str(),
      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
      0644);
  const std::string_view text = signal_text.text();
  const bool is_whole = file >= 0 && ::write(file, text.data(), text.size()) ==
                                         static_cast<ssize_t>(text.size());
  ::close(file);
  if (is_whole) {
    ::rename(installed->temporary.c_str(), installed->path.c_str());
  }
}

// The handler stays: other threads that fail at the same time wait in it. A
// fault of its own ends the process.
void on_signal(int number) {
  if (const Telling telling; telling.is_first) {
    write_from_signal(number);
  }
  struct sigaction action {};
  action.sa_handler = SIG_DFL; // NOLINT(*-union-access): its interface
  ::sigaction(number, &action, nullptr);
  ::raise(number);
}

// A stack overflow leaves no room for the handler.
void give_signal_stack() {
  constexpr std::size_t kBytes = 1U << 18U;
  stack_t stack{};
  if (::sigaltstack(nullptr, &stack) == 0 &&
      (stack.ss_flags & SS_DISABLE) != 0) {
    stack.ss_sp = std::malloc(kBytes); // NOLINT: kept for good
    stack.ss_size = kBytes;
    stack.ss_flags = 0;
    ::sigaltstack(&stack, nullptr);
  }
}

void take_signal(int number) {
  struct sigaction before {};
  ::sigaction(number, nullptr, &before);
  if (before.sa_handler == SIG_DFL) { // NOLINT(*-union-access): its interface
    struct sigaction action {};
    action.sa_handler = on_signal; // NOLINT(*-union-access)
    action.sa_flags = static_cast<int>(SA_ONSTACK | SA_NODEFER);
    ::sigaction(number, &action, nullptr);
  }
}

} // namespace

void install_error_file() {
  const char* const path = error_file_path();
  if (path == nullptr || installed != nullptr) {
    return;
  }
  std::array<void*, 1> frame{};
  static_cast<void>(::backtrace(frame.data(), 1)); // loads what it needs
  installed = new Installed{// NOLINT(*-owning-memory): kept for the handlers
                            .path = path,
                            .temporary = std::string(path) + ".tmp",
                            .terminate = std::get_terminate()};
  std::set_terminate(on_terminate);
  give_signal_stack();
  for (const int number : kFatalSignals) {
    take_signal(number);
  }
}

void write_error_file(const std::exception& error) {
  write_once(error.what(), "", is_follow_on(error));
}

} // namespace lockstep::launch
