// SPDX-License-Identifier: BSD-3-Clause
//
// Opens and saves checkpoint files without LibTorch, of all formats.
//   auto file = ckpt::load("checkpoint.pth.tar");      // Result<Checkpoint>
//   const Value* weights = file->root.find("state_dict");
//   ckpt::save("copy.pth.tar", file->root);
//   for (const auto& [name, tensor] : ckpt::tensors("model.safetensors")) {
//     use(name, tensor.span<float>());                 // no copy
//   }
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// Opens `path`, whatever it is called; the bytes decide.
/// Errors: kNotFound, kIo, kCorrupt, kUnsupported, kUnsafe.
Result<Checkpoint> load(
    const std::string& path,
    const LoadOptions& options = {},
    FileSystem& fs = real_fs());

/// The same for bytes in memory. `name` stands for the path in messages.
/// Ownership: shares `source`.
Result<Checkpoint> load(
    const std::shared_ptr<ByteSource>& source,
    const std::string& name,
    const LoadOptions& options = {});

/// The same of a file that is open already: `open_source(path, ..., fs)`.
/// What lies beside it is found by its path.
Result<Checkpoint> load(
    const std::shared_ptr<ByteSource>& source,
    const std::string& path,
    const LoadOptions& options,
    FileSystem& fs);

/// A tensor and its dotted name: "state_dict.fc.weight".
struct NamedTensor {
  std::string name = {};
  Tensor tensor = {};
};

/// All tensors of a file in its order, wherever they are in it (walk.h). Those
/// that have bytes in it (of a sparse one its parts) get a storage of their own
/// in which `Tensor::span` finds the elements row by row: those of the mapped
/// file where they lie so, else a copy, made when they are asked for first.
/// Ownership: each holds what it needs of the file.
/// Errors: throws those of `load`, and kUnsafe (E_DEPTH, E_LIMIT); reading
/// throws kUnsafe (E_LIMIT) when the copies that were read of one call together
/// repeat the bytes of their storages beyond the limits.
std::vector<NamedTensor> tensors(
    const std::string& path,
    const LoadOptions& options = {},
    FileSystem& fs = real_fs());
/// The same of a tree.
std::vector<NamedTensor> tensors_of(
    const Value& root,
    const Limits& limits = {});

/// For `LoadOptions::beside`, to load many files of a folder.
std::shared_ptr<FolderFacts> make_folder_facts();

/// Writes PyTorch's zip format (stored, 64-byte aligned, protocol 2): Python
/// reads it with `torch.load(weights_only=True, mmap=True)`. Atomic: a failure
/// leaves the old file. Equal trees and names give equal bytes.
/// Errors: kIo; kUnsupported for a value Python's safe loader would refuse (the
/// message says where: "root['optimizer']"); kInvalidArgument for a tensor that
/// leaves its storage; kCorrupt if a storage read from a file is damaged.
Status save(
    const std::string& path,
    const Value& root,
    const SaveOptions& options = {},
    FileSystem& fs = real_fs());

/// The bytes that `save` would write to "archive.pt", to be sent or kept:
/// `load(make_source(bytes), name)` and Python's `torch.load` of a BytesIO read
/// them. Errors: those of `save`; kIo if a file that holds a storage fails.
Result<std::string> save_bytes(const Value& root);

/// The bytes of an .npy file with the elements of `tensor`, in blocks.
/// Errors: E_DTYPE where elements share bytes; the storage's and `visit`'s.
Status export_npy(const Tensor& tensor, const BlockVisitor& visit);

} // namespace lockstep::ckpt
#pragma GCC visibility pop
