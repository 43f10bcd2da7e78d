// SPDX-License-Identifier: BSD-3-Clause
//
// Pickles in tar files (checkpoints up to torch 0.1.9) and in npy files.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/formats/tar/tar_members.h"
#include "lockstep/ckpt/tools/scan/scan_report.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt::internal {
namespace {

using Place = ScanCollector::Place;

constexpr std::uint64_t kFirstNpyHead = 256;
// Enough to know a tar file.
constexpr std::uint64_t kTarHeadBytes = 512;

Error bad_tar(std::uint64_t offset, std::string message) {
  return {
      .code = ErrorCode::kCorrupt,
      .op = "ckpt.scan",
      .message = std::move(message),
      .offset = offset,
      .detail = "E_TRUNCATED"};
}

// The members `storages` and `tensors`: pickles with raw bytes in between,
// whose length the value of the pickle before them tells.
class MemberScan {
 public:
  MemberScan(
      ByteSource& source,
      Place place,
      bool has_tensors,
      ScanCollector& out)
      : source_(source),
        place_(std::move(place)),
        has_tensors_(has_tensors),
        out_(out) {}

  void run() {
    for (std::uint64_t at = 0; at < source_.size();) {
      const auto end = scan_next(at);
      if (!end) {
        return;
      }
      at = *end;
    }
  }

 private:
  // Gives the offset after the pickle at `at` and its raw bytes; nothing if
  // something is broken.
  std::optional<std::uint64_t> scan_next(std::uint64_t at) {
    auto scan = scan_pickle_at(
        source_,
        at,
        {.limits = out_.limits(),
         .has_joblib_arrays = false,
         .has_changed_names = out_.has_changed_names()});
    if (!scan) {
      out_.add_unreadable(std::move(scan).error());
      return std::nullopt;
    }
    out_.add(*scan, {.record = place_.record, .offset = place_.offset + at});
    if (scan->broken) {
      return std::nullopt;
    }
    at += scan->consumed;
    const auto raw = raw_bytes(*scan, at);
    if (!raw) {
      out_.add_unreadable(bad_tar(
          place_.offset + at,
          "the bytes behind a pickle are truncated, or nothing tells how many "
          "they are"));
      return std::nullopt;
    }
    return at + *raw;
  }

  // Bytes after a pickle: i64 count and the elements of a storage; or i32
  // rank, 4 unused, sizes, strides and offset of a tensor.
  std::optional<std::uint64_t> raw_bytes(
      const PickleScan& scan,
      std::uint64_t at) {
    if (scan.root == PickleRoot::kPlain || at == source_.size()) {
      return 0;
    }
    const auto dtype =
        has_tensors_ ? DType::kInt64 : storage_class_dtype(scan.root_class);
    std::vector<std::byte> scratch;
    const auto head = source_.view(at, sizeof(std::uint64_t), scratch);
    if (scan.root != PickleRoot::kTriple || !dtype || !head) {
      return std::nullopt;
    }
    const std::uint64_t rest = source_.size() - at - head->size();
    const std::uint64_t count =
        has_tensors_ ? 2 * std::uint64_t{read_le<std::uint32_t>(*head, 0)} + 1
                     : read_le<std::uint64_t>(*head, 0);
    const std::uint64_t size = dtype_info(*dtype).size;
    return count <= rest / size ? std::optional(head->size() + count * size)
                                : std::nullopt;
  }

  ByteSource& source_;
  Place place_;
  bool has_tensors_;
  ScanCollector& out_;
};

// A tar file whose headers cannot be trusted: content starts at every block.
void scan_blocks(ByteSource& source, ScanCollector& out) {
  // A pickle may stand at each block, and seem to go on to the end: its budget
  // ends that.
  for (std::uint64_t at = 0; at < source.size();) {
    const auto scan = scan_pickle_at(
        source,
        at,
        {.limits = out.limits(), .has_joblib_arrays = false});
    if (!scan) {
      out.add_unreadable(scan.error());
      return;
    }
    if (!scan->names.empty() && is_pickle_here(source, at, *scan)) {
      out.add(*scan, {.offset = at});
    }
    const std::uint64_t step = scan->broken ? 1 : scan->consumed;
    at += (step + kTarHeadBytes - 1) / kTarHeadBytes * kTarHeadBytes;
  }
}

// What holds the header of an array: there may be very many small ones.
Result<ByteSpan> npy_head(
    ByteSource& source,
    std::vector<std::byte>& scratch,
    ScanCollector& out) {
  const std::uint64_t most = std::min(source.size(), kMaxNpyHead);
  for (std::uint64_t length = std::min(most, kFirstNpyHead);; length = most) {
    LOCKSTEP_TRY(out.limits().budget->read(length));
    LOCKSTEP_ASSIGN(const ByteSpan head, source.view(0, length, scratch));
    const auto begin = npy_data_offset(head, source.size());
    if (length == most || !begin || *begin <= length) {
      return head;
    }
  }
}

// Where an array of bytes ends; nothing if it holds or may hold objects: then
// all that follows its header was looked at.
std::optional<std::uint64_t> scan_array(
    const std::shared_ptr<ByteSource>& source,
    const Place& place,
    ScanCollector& out) {
  std::vector<std::byte> scratch;
  auto head = npy_head(*source, scratch, out);
  if (!head) {
    out.add_unreadable(std::move(head).error());
    return std::nullopt;
  }
  auto end = npy_end(*head, source->size());
  if (end) {
    return *end; // numbers, texts, dates: bytes in any case
  }
  // Of all other types some are objects, in many spellings: what follows tells.
  const auto begin = npy_data_offset(*head, source->size());
  if (begin && *begin < source->size()) {
    const auto content = slice_source(source, *begin, source->size() - *begin);
    const Place inside{.record = place.record, .offset = place.offset + *begin};
    if (scan_stream(*content, inside, out)) {
      return std::nullopt;
    }
  }
  out.add_unreadable(std::move(end).error(), place);
  return std::nullopt;
}

// What a program saved behind an array, by the same handle. True for another
// array, which is still to be looked at.
bool scan_after_array(
    const std::shared_ptr<ByteSource>& rest,
    const Place& place,
    ScanCollector& out) {
  std::vector<std::byte> scratch;
  const auto head =
      rest->view(0, std::min(rest->size(), kTarHeadBytes), scratch);
  if (head && is_npy(*head)) {
    return true;
  }
  if (head && starts_like_zip(*head)) {
    // Not looked at: archives in arrays in archives would have no end.
    out.add_unreadable(
        read_error(
            ErrorCode::kUnsupported,
            "E_TRAILING",
            "a zip file follows the array"),
        place);
  } else if (!head) {
    out.add_unreadable(head.error());
  } else if (!scan_stream(*rest, place, out)) {
    out.add_warning(
        "W_TRAILING",
        format("{} bytes follow the array", rest->size()),
        place);
  }
  return false;
}

void scan_content(
    const std::string& name,
    const std::shared_ptr<ByteSource>& content,
    ScanCollector& out) {
  const std::string base = base_name(name);
  const Place place{.record = name, .is_sure = base == "pickle"};
  if (base == "storages" || base == "tensors") {
    MemberScan(*content, place, base == "tensors", out).run();
  } else if (!scan_member(content, place, 0, out)) {
    note_packed(*content, place, out);
  }
}

// torch follows a link that is called like a part of a checkpoint.
void scan_special(
    const TarMembers& tar,
    const SpecialMember& special,
    ScanCollector& out) {
  const std::string base = base_name(special.name);
  if (base != "storages" && base != "tensors" && base != "pickle") {
    return;
  }
  const auto content = tar.find(special.target);
  if (content != nullptr) {
    scan_content(special.name, content, out);
    return;
  }
  Error error = read_error(
      ErrorCode::kUnsupported,
      "E_TAR",
      format(
          "it leads to '{}'; expected a file of the archive",
          escape(special.target)));
  error.record = special.name;
  out.add_unreadable(std::move(error));
}

} // namespace

void scan_tar(const std::shared_ptr<ByteSource>& source, ScanCollector& out) {
  const auto tar =
      TarMembers::open(source, out.limits(), SpecialMembers::kNote);
  if (!tar) {
    out.add_unreadable(tar.error());
    scan_blocks(*source, out);
    return;
  }
  for (const Warning& warning : tar->warnings()) {
    out.add_unreadable(
        read_error(ErrorCode::kUnsupported, "E_TRAILING", warning.text));
  }
  for (const std::string& name : tar->names()) {
    scan_content(name, tar->find(name), out);
  }
  for (const SpecialMember& special : tar->specials()) {
    scan_special(*tar, special, out);
  }
}

void scan_npy(
    const std::shared_ptr<ByteSource>& source,
    const ScanCollector::Place& place,
    ScanCollector& out) {
  out.set_format("npy");
  for (std::uint64_t at = 0;;) {
    Place here = place;
    here.offset += at;
    const auto rest = slice_source(source, at, source->size() - at);
    const auto end = scan_array(rest, here, out);
    if (!end || *end == rest->size()) {
      return;
    }
    at += *end;
    here.offset += *end;
    const auto behind = slice_source(source, at, source->size() - at);
    if (!scan_after_array(behind, here, out)) {
      return;
    }
  }
}

} // namespace lockstep::ckpt::internal
