// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_header.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_plan.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace internal {
namespace {

// Gathers small writes; large blocks go straight to the file.
class BufferedOutput {
 public:
  explicit BufferedOutput(WritableFile& file) : file_(file) {}

  Status write(ByteSpan bytes) {
    if (buffer_.size() + bytes.size() > kGatherBytes) {
      LOCKSTEP_TRY(flush());
      if (bytes.size() > kGatherBytes / 2) {
        return file_.write(bytes);
      }
    }
    buffer_.append(as_text(bytes));
    return {};
  }
  Status write(std::string_view text) {
    return write(as_byte_span(text));
  }
  // At the end.
  Status flush() {
    if (buffer_.empty()) {
      return {};
    }
    LOCKSTEP_TRY(file_.write(as_byte_span(buffer_)));
    buffer_.clear();
    return {};
  }

 private:
  static constexpr std::size_t kGatherBytes = 256 << 10;

  WritableFile& file_;
  std::string buffer_;
};

constexpr std::size_t kHeaderAlignment = 8;

// The package's order: type (later rows first), then name.
bool comes_before(const PlannedTensor& a, const PlannedTensor& b) {
  return a.type != b.type ? a.type > b.type : a.name < b.name;
}

// As the package: `json_quote`, but DEL stays as it is.
std::string quote(std::string_view text) {
  constexpr char kDelete = '\x7f';
  std::string quoted = "\"";
  const auto parts = split(text, kDelete);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = json_quote(parts[i]);
    quoted.append(i == 0 ? 0 : 1, kDelete);
    quoted.append(part, 1, part.size() - 2);
  }
  return quoted + '"';
}

void append_entry(
    std::string& header,
    const PlannedTensor& planned,
    std::uint64_t begin) {
  header += quote(planned.name) + R"(:{"dtype":")";
  header += planned.type->name;
  header += R"(","shape":[)";
  const std::size_t rank = planned.tensor->sizes.size();
  for (std::size_t d = 0; d < rank; ++d) {
    const bool is_packed = planned.type->bits < 8 && d + 1 == rank;
    header += (d == 0 ? "" : ",") +
              std::to_string(planned.tensor->sizes[d] * (is_packed ? 2 : 1));
  }
  header +=
      format(R"(],"data_offsets":[{},{}]}})", begin, begin + planned.bytes);
}

std::string header_of(
    std::span<const PlannedTensor> tensors,
    const SafetensorsMetadata& metadata) {
  std::string header = "{";
  const auto separate = [&header] { header += header.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    header += R"("__metadata__":{)";
    for (const auto& [key, text] : metadata) {
      header +=
          (header.back() == '{' ? "" : ",") + quote(key) + ":" + quote(text);
    }
    header += "}";
  }
  std::uint64_t position = 0;
  for (const PlannedTensor& planned : tensors) {
    separate();
    append_entry(header, planned, position);
    position += planned.bytes;
  }
  header += "}";
  while (header.size() % kHeaderAlignment != 0) {
    header.push_back(' ');
  }
  return header;
}

Status write_body(
    WritableFile& file,
    const std::string& header,
    std::span<const PlannedTensor> tensors) {
  BufferedOutput out(file);
  std::string length;
  append_le(length, std::uint64_t{header.size()});
  LOCKSTEP_TRY(out.write(length));
  LOCKSTEP_TRY(out.write(header));
  for (const PlannedTensor& planned : tensors) {
    LOCKSTEP_TRY(about(
        for_each_block(
            *planned.tensor,
            [&out](ByteSpan block) { return out.write(block); }),
        format("tensor '{}'", escape(planned.name))));
  }
  return out.flush();
}

} // namespace

Status write_safetensors_file(
    const std::string& path,
    std::span<PlannedTensor> tensors,
    const SafetensorsMetadata& metadata,
    const SaveOptions& options,
    FileSystem& fs) {
  std::ranges::sort(tensors, comes_before);
  const std::string header = header_of(tensors, metadata);
  if (header.size() > kMaxSafetensorsHeader) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "ckpt.save",
        .message = format(
            "the header would have {} bytes; expected at most {}",
            header.size(),
            kMaxSafetensorsHeader),
        .hint = "write several files with shard_bytes",
        .path = path,
        .detail = "E_LIMIT"};
  }
  std::uint64_t bytes = kSafetensorsLengthBytes + header.size();
  for (const PlannedTensor& planned : tensors) {
    bytes += planned.bytes;
  }
  return write_file_atomically(
      fs,
      path,
      [&](WritableFile& file) { return write_body(file, header, tensors); },
      {.expected_bytes = bytes,
       .durable = options.durable,
       .replace = options.replace});
}

} // namespace internal

Status write_safetensors(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(
      auto plan,
      in_file(internal::plan_safetensors(root, options), path));
  if (options.shard_bytes != 0) {
    return internal::write_safetensors_shards(path, plan, options, fs);
  }
  return internal::write_safetensors_file(
      path,
      plan.tensors,
      plan.metadata,
      options,
      fs);
}

} // namespace lockstep::ckpt
