// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/event_file.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep::report {
namespace {

// Protobuf: a field is its number and one of these, then the value.
enum class Wire : std::uint8_t { kVarint = 0, k64 = 1, kBytes = 2, k32 = 5 };

// Fields of the messages Event, SessionLog, Summary and Summary.Value.
constexpr unsigned kWallTime = 1;
constexpr unsigned kStep = 2;
constexpr unsigned kFileVersion = 3;
constexpr unsigned kSummary = 5;
constexpr unsigned kSessionLog = 7;
constexpr unsigned kStatus = 1;
constexpr std::uint64_t kStatusStart = 1;
constexpr unsigned kValue = 1;
constexpr unsigned kTag = 1;
constexpr unsigned kSimpleValue = 2;

template <class T>
void put_number(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) { // little endian
    out += static_cast<char>(value >> (8 * i));
  }
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out += static_cast<char>(value | 0x80);
  }
  out += static_cast<char>(value);
}

void put_key(std::string& out, unsigned field, Wire wire) {
  put_varint(out, field << 3 | static_cast<unsigned>(wire));
}

void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_key(out, field, Wire::kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// The front of every Event: when, and at which step.
std::string begin_event(std::int64_t step) {
  const std::chrono::duration<double> now =
      std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  put_key(event, kWallTime, Wire::k64);
  put_number(event, std::bit_cast<std::uint64_t>(now.count()));
  put_key(event, kStep, Wire::kVarint);
  put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

std::string version_event() {
  std::string event = begin_event(0);
  put_bytes(event, kFileVersion, "brain.Event:2");
  return event;
}

std::string start_event(std::int64_t first_step) {
  std::string session;
  put_key(session, kStatus, Wire::kVarint);
  put_varint(session, kStatusStart);
  std::string event = begin_event(first_step);
  put_bytes(event, kSessionLog, session);
  return event;
}

std::string summary_event(std::int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_bytes(value, kTag, scalar.tag);
    put_key(value, kSimpleValue, Wire::k32);
    put_number(value, std::bit_cast<std::uint32_t>(scalar.value));
    put_bytes(summary, kValue, value);
  }
  std::string event = begin_event(step);
  put_bytes(event, kSummary, summary);
  return event;
}

std::string record_of(std::string_view event) {
  std::string record;
  put_number(record, static_cast<std::uint64_t>(event.size()));
  put_number(record, masked_crc32c(record));
  record += event;
  put_number(record, masked_crc32c(event));
  return record;
}

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1U ? 0x82F63B78U : 0U);
    }
    table[i] = crc;
  }
  return table;
}

// The second of a file's name; 0 if it is none of ours.
std::int64_t second_of(std::string_view name) {
  std::int64_t second = 0;
  if (name.starts_with(kEventFilePrefix)) {
    name.remove_prefix(kEventFilePrefix.size());
    std::from_chars(name.data(), name.data() + name.size(), second);
  }
  return second;
}

// TensorBoard reads the files of a folder in the order of their names: a new
// one must come after the others, also in the second of its predecessor.
Result<std::string> new_name(FileSystem& fs, const std::string& folder) {
  std::int64_t second =
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())
          .time_since_epoch()
          .count();
  LOCKSTEP_ASSIGN(const auto names, fs.list(folder));
  for (const std::string& name : names) {
    second = std::max(second, second_of(name) + 1);
  }
  ::utsname system = {};
  static_cast<void>(::uname(&system));
  return format(
      "{}/{}{:010}.{}.{}.0",
      folder,
      kEventFilePrefix,
      second,
      system.nodename,
      ::getpid());
}

} // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU];
  }
  return std::rotr(~crc, 15) + 0xA282EAD8U;
}

EventFile::EventFile(std::unique_ptr<GrowingFile> file)
    : file_(std::move(file)) {}
EventFile::EventFile(EventFile&&) noexcept = default;
EventFile& EventFile::operator=(EventFile&&) noexcept = default;
EventFile::~EventFile() = default;

Result<EventFile> EventFile::create(
    FileSystem& fs,
    const std::string& folder,
    std::int64_t first_step) {
  LOCKSTEP_ASSIGN(const std::string path, new_name(fs, folder));
  {
    LOCKSTEP_ASSIGN(const auto made, fs.create(path, 0666));
    LOCKSTEP_TRY(made->close());
  }
  LOCKSTEP_ASSIGN(auto file, GrowingFile::open(fs, path));
  LOCKSTEP_TRY(file->append(record_of(version_event())));
  LOCKSTEP_TRY(file->append(record_of(start_event(first_step))));
  return EventFile(std::move(file));
}

Status EventFile::add(std::int64_t step, std::span<const Scalar> scalars) {
  return file_->append(record_of(summary_event(step, scalars)));
}

Status EventFile::sync() {
  return file_->sync();
}

} // namespace lockstep::report
