// SPDX-License-Identifier: BSD-3-Clause
//
// Collects what the scanners of all containers find in one file.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"

namespace lockstep::ckpt::internal {

/// Endings of pickles: files that are no checkpoints, and records.
inline constexpr std::array<std::string_view, 5> kPickleEndings{
    ".joblib",
    ".pkl",
    ".pickle",
    ".p",
    ".debug_pkl"};

class ScanCollector {
 public:
  /// `bytes`: those of the file.
  ScanCollector(std::string path, std::uint64_t bytes, const Limits& limits);

  /// Where the bytes of a pickle come from.
  struct Place {
    /// Record or member; empty for the file itself.
    std::string record = {};
    /// Units: bytes from the start of the record or file.
    std::uint64_t offset = 0;
    /// The archive is a TorchScript program: its classes are in it.
    bool is_script = false;
    /// The name says that it is a pickle: any name in it counts.
    bool is_sure = false;
  };

  /// Adds a pickle that was scanned.
  void add(const PickleScan& scan, const Place& place);
  /// Keys of the storages that the pickles of one archive name; an archive
  /// inside another starts with none. Gives the ones before.
  std::set<std::string> swap_storage_keys(std::set<std::string> keys) {
    return std::exchange(storage_keys_, std::move(keys));
  }
  [[nodiscard]] const std::set<std::string>& storage_keys() const noexcept {
    return storage_keys_;
  }
  /// A pickle that was added changed what names stand for: Python has them so
  /// in all that it loads afterwards.
  [[nodiscard]] bool has_changed_names() const noexcept {
    return has_changed_names_;
  }
  /// The bytes are taken for something else than a pickle, as a text that
  /// starts like one: notes what Python's unpickler would ask for in them.
  void note_unlikely(const PickleScan& scan, const Place& place);
  /// Adds what a program has Python run that is no name in a pickle.
  void add_code(const std::string& name, const Place& place);
  /// Counts what a finding takes, before it is made. Errors: kUnsafe (E_LIMIT).
  Status count_finding(const std::string& name, const std::string& record);
  /// Adds one that was counted.
  void add_finding(ScanFinding finding);
  /// The file has a graph with so many different operators.
  void add_operators(std::uint64_t count);
  /// The file is a TorchScript program.
  void set_script();
  /// A part that could not be scanned; at a place, from whose offset its own
  /// counts.
  void add_unreadable(Error error);
  void add_unreadable(Error error, const Place& place);
  void
  add_warning(std::string_view detail, std::string message, const Place& place);
  void set_format(std::string_view format);
  [[nodiscard]] const std::string& path() const noexcept {
    return report_.path;
  }
  /// With the budget of the file.
  [[nodiscard]] const Limits& limits() const noexcept {
    return limits_;
  }
  [[nodiscard]] bool has_format() const noexcept {
    return !report_.format.empty();
  }
  ScanReport finish();

 private:
  // False if there is no room for what was counted; the first time it says so.
  bool has_room(Status made);
  bool has_room_for(const std::string& name, const Place& place);
  void add_note(Error note);

  ScanReport report_;
  Limits limits_;
  std::set<std::string> names_;
  std::set<std::string> script_classes_;
  std::set<std::string> storage_keys_;
  bool is_full_ = false;
  bool is_unreadable_ = false;
  bool is_hiding_ = false;
  bool has_changed_names_ = false;
};

/// Scans the pickles of a stream: a plain pickle, a legacy checkpoint with its
/// blobs, several of them in a row. `place.record` is for messages.
/// Returns false if the bytes do not look like a pickle at all.
bool scan_stream(
    ByteSource& source,
    const ScanCollector::Place& place,
    ScanCollector& out);

/// True if the bytes at `offset`, of which `scan` is the scan, are taken for a
/// pickle: by PROTO, by a name that Python could ask for, or since they are one
/// to their end. A text may start like a pickle of protocol 0.
bool is_pickle_here(
    ByteSource& source,
    std::uint64_t offset,
    const PickleScan& scan);

/// Scans the records of a zip file that hold pickles; `depth` counts archives
/// inside archives.
void scan_zip(
    const std::shared_ptr<ByteSource>& source,
    const std::string& outer,
    int depth,
    ScanCollector& out);

/// Scans a record of an archive or a member of a tar file, which may be
/// anything; `depth` counts the archives around it. Returns false if the bytes
/// do not look like anything with pickles.
bool scan_member(
    const std::shared_ptr<ByteSource>& member,
    const ScanCollector::Place& place,
    int depth,
    ScanCollector& out);

/// Says that compressed bytes, in which anything may be, are not looked into.
void note_packed(
    ByteSource& source,
    const ScanCollector::Place& place,
    ScanCollector& out);

/// Scans every member of a tar file.
void scan_tar(const std::shared_ptr<ByteSource>& source, ScanCollector& out);

/// Scans npy arrays in a row: what follows the header of one that does not hold
/// numbers, texts or dates may be a pickle of objects, and so may what follows
/// the last one.
void scan_npy(
    const std::shared_ptr<ByteSource>& source,
    const ScanCollector::Place& place,
    ScanCollector& out);

/// Scans what `.metadata` in `folder` has PyTorch unpickle besides, and adds
/// the objects that are not clean. The last of `reports` is that of
/// `.metadata`; it is `kUnreadable` after that if the file does not tell where
/// they are.
void scan_dcp_objects(
    const std::string& folder,
    const Limits& limits,
    FileSystem& fs,
    std::vector<ScanReport>& reports);

} // namespace lockstep::ckpt::internal
