// SPDX-License-Identifier: BSD-3-Clause
//
// The objects of a folder that `torch.distributed.checkpoint` wrote: PyTorch
// unpickles the bytes that `.metadata` names for them, wherever these lie.
#include <algorithm>
#include <tuple>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/file_name.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"
#include "lockstep/ckpt/tools/scan/scan_report.h"

namespace lockstep::ckpt::internal {
namespace {

class ObjectScan {
 public:
  ObjectScan(std::string folder, const Limits& limits, FileSystem& fs)
      : folder_(std::move(folder)), limits_(limits), fs_(fs) {}

  // In the order of the files.
  Result<std::vector<DcpPlace>> places() {
    LOCKSTEP_ASSIGN(const auto source, open(kDcpMetadataFile));
    LOCKSTEP_ASSIGN(DcpMetadata metadata, read_dcp_metadata(*source, limits_));
    std::vector<DcpPlace> places;
    for (DcpItem& item : metadata.items) {
      if (!item.is_tensor) { // of a tensor PyTorch reads the weights alone
        places.push_back(std::move(item.place));
      }
    }
    std::ranges::sort(places, {}, [](const DcpPlace& place) {
      return std::tie(place.file, place.offset);
    });
    return places;
  }

  ScanReport scan_object(const DcpPlace& place) {
    const std::string name =
        format("{}/{} at {:#x}", folder_, place.file, place.offset);
    const auto object = object_at(place);
    if (!object) {
      return {
          .path = name,
          .verdict = Verdict::kUnreadable,
          .notes = {object.error()}};
    }
    ScanReport report = scan(*object, name, limits_);
    if (report.verdict == Verdict::kOther) {
      report.verdict = Verdict::kUnreadable;
    }
    return report;
  }

 private:
  Result<std::shared_ptr<ByteSource>> open(const std::string& name) {
    return open_source(folder_ + "/" + name, {false}, fs_);
  }

  Result<std::shared_ptr<ByteSource>> object_at(const DcpPlace& place) {
    if (!is_plain_file_name(place.file)) {
      return corrupt_file(
          "E_NAME",
          "an object is said to be in what is not a file of the folder");
    }
    if (file_ != place.file) {
      LOCKSTEP_ASSIGN(source_, open(place.file));
      file_ = place.file;
      end_ = 0;
    }
    const std::uint64_t size = source_->size();
    if (place.offset > size || place.length > size - place.offset) {
      return corrupt_file(
          "E_BOUNDS",
          format(
              "an object reaches past the end of the file; it has {} bytes",
              size));
    }
    if (place.offset < end_) { // else much could be scanned often
      return corrupt_file("E_OVERLAP", "an object overlaps with another one");
    }
    end_ = place.offset + place.length;
    return slice_source(source_, place.offset, place.length);
  }

  std::string folder_;
  Limits limits_;
  FileSystem& fs_;
  // Of the object before.
  std::string file_;
  std::shared_ptr<ByteSource> source_;
  std::uint64_t end_ = 0;
};

} // namespace

void scan_dcp_objects(
    const std::string& folder,
    const Limits& limits,
    FileSystem& fs,
    std::vector<ScanReport>& reports) {
  ObjectScan objects(folder, limits, fs);
  const auto places = objects.places();
  if (!places) {
    reports.back().verdict = Verdict::kUnreadable;
    reports.back().notes.push_back(places.error());
    return;
  }
  for (const DcpPlace& place : *places) {
    ScanReport report = objects.scan_object(place);
    if (report.verdict != Verdict::kClean) {
      reports.push_back(std::move(report));
    }
  }
}

} // namespace lockstep::ckpt::internal
