// SPDX-License-Identifier: BSD-3-Clause
//
// Writes the pickle `.metadata`: what read_dcp_metadata reads.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"

namespace lockstep::ckpt {

/// The objects that PyTorch 2.13 would pickle for these items, in protocol 2;
/// `empty` is an attribute more, which it does not look at.
std::string dcp_metadata_pickle(
    const std::vector<DcpItem>& items,
    const std::vector<DcpEmpty>& empty = {});

} // namespace lockstep::ckpt
