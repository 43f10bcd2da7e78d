// SPDX-License-Identifier: BSD-3-Clause
//
// No opcode is missing: the table is Python's own list.
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/pickle_opcodes.h"
#include "tests/support/python.h"

namespace lockstep::ckpt {
namespace {

TEST(OpcodeOracle, TableIsPythons) {
  std::string table;
  for (const OpcodeInfo& row : opcode_table()) {
    table += format(
        "{}\t{}\t{}\n",
        int{opcode_byte(row.op)},
        row.name,
        int{row.protocol});
  }
  EXPECT_EQ(table, test::run_python("ckpt_opcodes.py"));
}

} // namespace
} // namespace lockstep::ckpt
