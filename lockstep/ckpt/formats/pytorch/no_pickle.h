// SPDX-License-Identifier: BSD-3-Clause
//
// What a zip archive without `data.pkl` is.
#pragma once

#include "lockstep/base/error.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt::internal {

/// E_WRONG_FORMAT for an archive that PyTorch writes for something else (a
/// program of torch.export, a torch.package), else E_NO_PICKLE.
Error no_pickle_error(const ZipReader& zip);

} // namespace lockstep::ckpt::internal
