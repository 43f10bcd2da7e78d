// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds of data behind `open_dataset`, and how a path is taken for one:
// docs/data.md has the table.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

// Each opens both parts. Errors: throws kNotFound (E_NO_DATA) where there is
// nothing of the kind, and what its files are found to be.

/// Files NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte, plain or `.gz`,
/// where NAME ends with train, t10k, test or val. `path` is their folder, or
/// that and the beginning of their names, where a folder has several sets.
DatasetParts open_idx(const std::string& path, const DatasetOptions& options);
/// Of CIFAR-10 or CIFAR-100 (fine labels), binary or pickled.
DatasetParts open_cifar10(
    const std::string& path,
    const DatasetOptions& options);
DatasetParts open_cifar100(
    const std::string& path,
    const DatasetOptions& options);
/// A file of arrays, or a folder with one or with train and val.
DatasetParts open_arrays(
    const std::string& path,
    const DatasetOptions& options);
/// A table, or a folder with one or with train and val.
DatasetParts open_csv(const std::string& path, const DatasetOptions& options);
/// Images with masks.
DatasetParts open_segmentation(
    const std::string& path,
    const DatasetOptions& options);

// Looks of a path: names of files, and the first bytes of a few.

/// "fashion-mnist", "mnist", "idx" or "".
std::string idx_kind(const std::string& path, FileSystem& fs);
/// "cifar10", "cifar100" or "".
std::string cifar_kind(const std::string& path, FileSystem& fs);
bool holds_arrays(const std::string& path, FileSystem& fs);
bool holds_csv(const std::string& path, FileSystem& fs);
/// Whether `holds_csv`, and the table's first column has paths of images.
bool holds_image_csv(const std::string& path, FileSystem& fs);
bool holds_segmentation(const std::string& path, FileSystem& fs);
/// Whether a folder of classes has parts for training and for validation.
bool has_class_parts(const std::string& directory, FileSystem& fs);

// What they share.

inline constexpr std::array<std::string_view, 2> kTrainNames{
    "train",
    "training"};
inline constexpr std::array<std::string_view, 5> kValNames{
    "val",
    "valid",
    "validation",
    "dev",
    "test"};

bool is_file(FileSystem& fs, const std::string& path);
bool is_folder(FileSystem& fs, const std::string& path);
/// Names in a folder; none if it cannot be listed.
std::vector<std::string> names_in(FileSystem& fs, const std::string& folder);
/// The folder in `folder` with the first of these names, in small or capital
/// letters; empty if there is none.
std::string folder_named(
    FileSystem& fs,
    const std::string& folder,
    std::span<const std::string_view> names);
/// "dir/a.b.png" -> "a.b".
std::string stem_of(const std::string& path);
/// ".png", in small letters; empty without one.
std::string ending_of(const std::string& path);

/// The files of the parts: one of several parts, or one for all.
struct PartFiles {
  std::string train = {};
  /// Empty: `train` is split.
  std::string val = {};
};
/// `path` itself if it is a file of these endings; in a folder train and val
/// (`kTrainNames`, `kValNames`), or else the only file. Nothing if there is no
/// such file, or several.
PartFiles part_files(
    FileSystem& fs,
    const std::string& path,
    std::span<const std::string_view> endings);

/// Errors: throws kNotFound (E_NO_DATA).
[[noreturn]] void
no_such_data(std::string message, const std::string& path, std::string hint);

/// Without what is random.
TransformOptions for_validation(TransformOptions transform);

} // namespace lockstep::internal
