// SPDX-License-Identifier: BSD-3-Clause
//
// Words that the tests against Python share.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "lockstep/ckpt/verify.h"

namespace lockstep::test {

/// Name of a case that reads its file mapped, or by read().
inline std::string mode_name(const testing::TestParamInfo<bool>& mode) {
  return mode.param ? "Mapped" : "Read";
}

/// The lines that make up the digest of `root`, or why there is none.
inline std::string rows_of(const ckpt::Value& root) {
  const auto rows = ckpt::digest_rows(root);
  if (!rows) {
    return to_string(rows.error());
  }
  std::string text;
  for (const ckpt::DigestRow& row : *rows) {
    text += digest_line(row);
  }
  return text;
}

} // namespace lockstep::test
