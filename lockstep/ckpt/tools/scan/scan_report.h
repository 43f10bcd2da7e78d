// SPDX-License-Identifier: BSD-3-Clause
//
// Collects what the scanners of all containers find in one file.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"

namespace lockstep::ckpt::internal {

/// Endings of pickles: files that are no checkpoints, and records.
inline constexpr std::array<std::string_view, 4> kPickleEndings{
    ".pkl",
    ".pickle",
    ".p",
    ".debug_pkl"};

class ScanCollector {
 public:
  ScanCollector(std::string path, const Limits& limits);

  /// Where the bytes of a pickle come from.
  struct Place {
    /// Record or member; empty for the file itself.
    std::string record = {};
    /// Units: bytes from the start of the record or file.
    std::uint64_t offset = 0;
    /// The archive is a TorchScript program: its classes are in it.
    bool is_script = false;
  };

  /// Adds a pickle that was scanned.
  void add(const PickleScan& scan, const Place& place);
  /// The file is a TorchScript program.
  void set_script();
  /// A part that could not be scanned.
  void add_unreadable(Error error);
  void
  add_warning(std::string_view detail, std::string message, const Place& place);
  void set_format(std::string_view format);
  [[nodiscard]] const Limits& limits() const noexcept {
    return limits_;
  }
  [[nodiscard]] bool has_format() const noexcept {
    return !report_.format.empty();
  }
  ScanReport finish();

 private:
  ScanReport report_;
  Limits limits_;
  std::set<std::string> names_;
  std::set<std::string> script_classes_;
  bool is_unreadable_ = false;
  bool is_hiding_ = false;
};

/// Scans the pickles of a stream: a plain pickle, a legacy checkpoint with its
/// blobs, several of them in a row. `place.record` is for messages.
/// Returns false if the bytes do not look like a pickle at all.
bool scan_stream(
    ByteSource& source,
    const ScanCollector::Place& place,
    ScanCollector& out);

/// Scans the records of a zip file that hold pickles; `depth` counts archives
/// inside archives.
void scan_zip(
    const std::shared_ptr<ByteSource>& source,
    const std::string& outer,
    int depth,
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

} // namespace lockstep::ckpt::internal
