// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes of Python as a source of a checkpoint.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include "lockstep/ckpt/byte_source.h"

namespace lockstep::python {

/// Ownership: holds a reference to `data`, which never changes; whoever lets
/// the source go last need not hold the GIL.
std::shared_ptr<ckpt::ByteSource> bytes_source(const nanobind::bytes& data);

} // namespace lockstep::python
