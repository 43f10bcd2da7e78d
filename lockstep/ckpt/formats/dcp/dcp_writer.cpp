// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/errno_error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/new_names.h"
#include "lockstep/ckpt/elements.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/dcp/dcp.h"
#include "lockstep/ckpt/formats/dcp/dcp_leaves.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata_pickle.h"
#include "lockstep/ckpt/pickle.h"

namespace lockstep::ckpt {
namespace {

using internal::DcpLeaf;

// Top folder of an item, as PyTorch writes it to a stream.
constexpr const char* kItemRoot = "archive";

bool is_data_file(const std::string& name) {
  return name.starts_with("__") && name.ends_with(kDcpDataSuffix);
}

// "__0_0.distcp", or the first later one that does not exist.
std::string new_data_file(const std::vector<std::string>& names) {
  for (std::size_t n = 0;; ++n) {
    std::string name = format("__0_{}{}", n, kDcpDataSuffix);
    if (std::ranges::find(names, name) == names.end()) {
      return name;
    }
  }
}

// A row-major tensor of the same elements; its bytes come from elsewhere.
Tensor stand_in(const Tensor& tensor) {
  Tensor plain{.dtype = tensor.dtype, .sizes = tensor.sizes};
  plain.strides = row_major_strides(tensor.sizes);
  plain.storage =
      std::make_shared<Storage>(Storage{.nbytes = contiguous_bytes(tensor)});
  plain.storage->dtype = tensor.dtype;
  return plain;
}

Result<std::uint64_t> write_tensor(WritableFile& file, const Tensor& tensor) {
  LOCKSTEP_ASSIGN(const PickledTree tree, write_pickle(stand_in(tensor)));
  return internal::write_pt_archive(
      file,
      kItemRoot,
      tree,
      [&tensor](ZipWriter& zip, const std::string& name, Storage& /*empty*/) {
        return zip.add(
            name,
            contiguous_bytes(tensor),
            [&tensor](const ZipWriter::Sink& sink) {
              return for_each_block(tensor, sink);
            });
      });
}

Result<std::uint64_t> write_object(WritableFile& file, const Value& value) {
  LOCKSTEP_ASSIGN(const PickledTree tree, write_pickle(value));
  return internal::write_pt_archive(
      file,
      kItemRoot,
      tree,
      internal::add_pt_storage);
}

Status write_items(
    WritableFile& file,
    const std::string& name,
    std::vector<DcpLeaf>& leaves) {
  std::uint64_t position = 0;
  for (DcpLeaf& leaf : leaves) {
    const Tensor* tensor =
        leaf.item.is_tensor ? leaf.value.as_tensor() : nullptr;
    auto length = tensor != nullptr ? write_tensor(file, *tensor)
                                    : write_object(file, leaf.value);
    if (!length) {
      length.error().message =
          format("'{}': {}", escape(leaf.item.name), length.error().message);
      return std::move(length).error();
    }
    DcpPlace& place =
        tensor != nullptr ? leaf.item.chunks[0].place : leaf.item.place;
    place = {.file = name, .offset = position, .length = *length};
    position += *length;
  }
  return {};
}

std::uint64_t tensor_bytes(const std::vector<DcpLeaf>& leaves) {
  std::uint64_t bytes = 0;
  for (const DcpLeaf& leaf : leaves) {
    if (leaf.item.is_tensor) {
      bytes += contiguous_bytes(*leaf.value.as_tensor());
    }
  }
  return bytes;
}

} // namespace

Status write_dcp(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs) {
  auto leaves = internal::dcp_leaves(root);
  if (!leaves) {
    leaves.error().path = path;
    return std::move(leaves).error();
  }
  const std::string metadata = path + "/" + kDcpMetadataFile;
  if (!options.replace && fs.stat(metadata)) {
    return errno_error("ckpt.save", metadata, EEXIST);
  }
  internal::NewNames made(fs, [&fs, &metadata] {
    const auto info = fs.stat(metadata);
    return info || info.error().code != ErrorCode::kNotFound;
  });
  made.add(path);
  LOCKSTEP_TRY(fs.create_directories(path));
  LOCKSTEP_ASSIGN(const auto names, fs.list(path));
  const std::string data = new_data_file(names);
  made.add(path + "/" + data);
  LOCKSTEP_TRY(write_file_atomically(
      fs,
      path + "/" + data,
      [&](WritableFile& file) { return write_items(file, data, *leaves); },
      {.expected_bytes = tensor_bytes(*leaves),
       .durable = options.durable,
       .replace = options.replace}));
  std::vector<DcpItem> items;
  items.reserve(leaves->size());
  for (DcpLeaf& leaf : *leaves) {
    items.push_back(std::move(leaf.item));
  }
  LOCKSTEP_TRY(write_file_atomically(
      fs,
      metadata,
      dcp_metadata_pickle(items),
      {.durable = options.durable, .replace = options.replace}));
  for (const std::string& name : names) {
    if (is_data_file(name)) {
      LOCKSTEP_TRY(fs.remove(format("{}/{}", path, name)));
    }
  }
  return {};
}

} // namespace lockstep::ckpt
