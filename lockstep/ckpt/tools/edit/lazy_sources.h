// SPDX-License-Identifier: BSD-3-Clause
//
// Storages that are made of others when they are read.
#pragma once

#include <memory>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// The elements of `inner` as another floating-point type.
std::shared_ptr<StorageSource>
cast_source(std::shared_ptr<Storage> inner, DType from, DType to);

/// True for a source of `cast_source` in which a finite number became infinite
/// when it was read.
bool has_overflowed(const StorageSource& source);

/// The elements of a view, row-major without gaps.
std::shared_ptr<StorageSource> gather_source(Tensor view);

} // namespace lockstep::ckpt::internal
