// SPDX-License-Identifier: BSD-3-Clause
//
// Pickles in tar files (checkpoints up to torch 0.1.9) and in npy files.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/formats/tar/tar_members.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/tools/scan/scan_report.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt::internal {
namespace {

using Place = ScanCollector::Place;

constexpr std::uint64_t kBlock = 512;
constexpr std::size_t kSizeOffset = 124;
constexpr std::size_t kSizeDigits = 12;
constexpr std::size_t kNameBytes = 100;

// Octal digits up to a NUL or space; nothing for anything else.
std::optional<std::uint64_t> octal(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c == '\0' || c == ' ') {
      break;
    }
    if (c < '0' || c > '7') {
      return std::nullopt;
    }
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

Error bad_tar(std::uint64_t offset, std::string message) {
  return {
      .code = ErrorCode::kCorrupt,
      .op = "ckpt.scan",
      .message = std::move(message),
      .offset = offset,
      .detail = "E_TRUNCATED"};
}

// The members `storages` and `tensors`: pickles with raw bytes in between,
// whose length the pickle before them tells.
class MemberScan {
 public:
  MemberScan(ByteSource& source, Place place, ScanCollector& out)
      : source_(source), place_(std::move(place)), out_(out) {}

  void run() {
    std::uint64_t at = 0;
    while (at < source_.size()) {
      std::vector<std::byte> scratch;
      const std::uint64_t length =
          std::min(source_.size() - at, out_.limits().max_pickle_bytes);
      auto bytes = source_.view(at, length, scratch);
      if (!bytes) {
        out_.add_unreadable(std::move(bytes).error());
        return;
      }
      const PickleScan scan = scan_pickle(*bytes, {.limits = out_.limits()});
      out_.add(scan, {.record = place_.record, .offset = place_.offset + at});
      if (scan.broken) {
        return;
      }
      at += scan.consumed;
      const auto raw = raw_bytes(scan, bytes->subspan(scan.consumed));
      if (!raw) {
        out_.add_unreadable(
            bad_tar(place_.offset + at, "the bytes of a tensor are truncated"));
        return;
      }
      at += *raw;
    }
  }

 private:
  // Bytes after a pickle: i64 count and the elements of a storage; or i32
  // rank, 4 unused, sizes, strides and offset of a tensor.
  static std::optional<std::uint64_t> raw_bytes(
      const PickleScan& scan,
      ByteSpan rest) {
    for (const PickleName& name : scan.names) {
      if (const auto dtype = storage_class_dtype(name.name)) {
        const std::uint64_t size = dtype_info(*dtype).size;
        if (rest.size() < 8 ||
            read_le<std::uint64_t>(rest, 0) > (rest.size() - 8) / size) {
          return std::nullopt;
        }
        return 8 + read_le<std::uint64_t>(rest, 0) * size;
      }
      if (find_global(name.name).kind == GlobalKind::kTensorClass) {
        const std::uint64_t rank =
            rest.size() < 8 ? ~0U : read_le<std::uint32_t>(rest, 0);
        const std::uint64_t bytes = 8 + 16 * rank + 8;
        return bytes <= rest.size() ? std::optional(bytes) : std::nullopt;
      }
    }
    return 0;
  }

  ByteSource& source_;
  Place place_;
  ScanCollector& out_;
};

// A member that is not one of a checkpoint in tar form may be anything.
void scan_member(
    const std::shared_ptr<ByteSource>& member,
    const Place& place,
    ScanCollector& out) {
  std::vector<std::byte> scratch;
  const auto head =
      member->view(0, std::min<std::uint64_t>(member->size(), kBlock), scratch);
  if (!head) {
    out.add_unreadable(head.error());
  } else if (starts_like_zip(*head)) {
    scan_zip(member, place.record, 1, out);
  } else if (is_tar(*head)) {
    out.add_unreadable(bad_tar(
        0,
        format(
            "'{}' is a tar file itself: unpack it to scan it",
            escape(place.record))));
  } else if (is_npy(*head)) {
    scan_npy(*member, place, out);
  } else {
    scan_stream(*member, place, out);
  }
}

} // namespace

void scan_tar(ByteSource& source, ScanCollector& out) {
  for (std::uint64_t at = 0; source.size() - at >= kBlock;) {
    std::vector<std::byte> scratch;
    auto header = source.view(at, kBlock, scratch);
    if (!header) {
      out.add_unreadable(std::move(header).error());
      return;
    }
    const std::string_view text = as_text(*header);
    if (text.front() == '\0') {
      return; // the end mark
    }
    std::string name(text.substr(0, kNameBytes));
    name.resize(std::min(name.find('\0'), name.size()));
    const auto size = octal(text.substr(kSizeOffset, kSizeDigits));
    at += kBlock;
    if (!is_tar(*header) || !size || *size > source.size() - at) {
      out.add_unreadable(bad_tar(
          at - kBlock,
          "a member of the tar file is damaged or truncated"));
      return;
    }
    const std::shared_ptr<ByteSource> whole(
        std::shared_ptr<ByteSource>(),
        &source);
    const auto member = slice_source(whole, at, *size);
    const Place place{.record = name};
    const std::string base = name.substr(name.rfind('/') + 1);
    if (base == "storages" || base == "tensors") {
      MemberScan(*member, place, out).run();
    } else {
      scan_member(member, place, out);
    }
    at += (*size + kBlock - 1) / kBlock * kBlock;
    if (at > source.size()) {
      return;
    }
  }
}

void scan_npy(
    ByteSource& source,
    const ScanCollector::Place& place,
    ScanCollector& out) {
  constexpr std::uint64_t kFixed = 12;
  constexpr std::uint64_t kMaxHeader = 1ULL << 20;
  out.set_format("npy");
  std::vector<std::byte> scratch;
  auto fixed = source.view(0, std::min(source.size(), kFixed), scratch);
  if (!fixed || fixed->size() < kFixed) {
    out.add_unreadable(bad_tar(0, "the header of the npy file is truncated"));
    return;
  }
  const bool is_first = (*fixed)[6] == std::byte{1};
  const std::uint64_t length = is_first ? read_le<std::uint16_t>(*fixed, 8)
                                        : read_le<std::uint32_t>(*fixed, 8);
  const std::uint64_t begin = is_first ? 10 : kFixed;
  if (length > kMaxHeader || length > source.size() - begin) {
    out.add_unreadable(
        bad_tar(begin, "the header of the npy file is truncated"));
    return;
  }
  auto header = source.view(begin, length, scratch);
  if (!header) {
    out.add_unreadable(std::move(header).error());
    return;
  }
  // 'descr': '|O', or a structured type with such a field.
  const bool has_objects =
      as_text(*header).find("|O") != std::string_view::npos ||
      as_text(*header).find("'O") != std::string_view::npos;
  const std::uint64_t end = begin + length;
  if (!has_objects || end == source.size()) {
    return;
  }
  const std::shared_ptr<ByteSource> whole(
      std::shared_ptr<ByteSource>(),
      &source);
  const auto pickle = slice_source(whole, end, source.size() - end);
  const Place inside{.record = place.record, .offset = place.offset + end};
  if (!scan_stream(*pickle, inside, out)) {
    out.add_unreadable(bad_tar(end, "the objects of the npy file are damaged"));
  }
}

} // namespace lockstep::ckpt::internal
