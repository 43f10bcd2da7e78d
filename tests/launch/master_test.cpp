// SPDX-License-Identifier: BSD-3-Clause
//
// Where the ranks of `lockstep run` are told to meet, by its flags.
#include "lockstep/launch/internal/master.h"

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/support/shell.h"

namespace lockstep::launch {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

/// `lockstep run FLAGS` of a rank that runs `script`.
test::ShellOutcome run_rank(
    const std::string& flags,
    const std::string& script) {
  return test::run_shell(format(
      "{}/bin/lockstep run {} sh -c '{}'",
      LOCKSTEP_BINARY_DIR,
      flags,
      script));
}

const std::string kHost = test::run_shell("printf %s $(hostname)").out;

// Flags, and where the ranks are told to meet: a regular
// expression of address, port, node and number of ranks.
struct Meeting {
  std::string flags = {};
  std::string place = {};
  std::string note = {};
};

class MeetingPlace : public testing::TestWithParam<Meeting> {};

TEST_P(MeetingPlace, IsWhatTheFlagsSay) {
  const Meeting& row = GetParam();
  const auto outcome = run_rank(
      row.flags,
      "echo $MASTER_ADDR $MASTER_PORT $GROUP_RANK $WORLD_SIZE");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex(row.place + "\n")) << outcome.err;
  if (row.note.empty()) {
    EXPECT_EQ(outcome.err, "");
  } else {
    EXPECT_THAT(outcome.err, HasSubstr(row.note));
  }
}

// 192.0.2.1 is nobody's (RFC 5737).
INSTANTIATE_TEST_SUITE_P(
    OneMachine,
    MeetingPlace,
    testing::Values(
        Meeting{"", "127.0.0.1 [0-9]+ 0 1"},
        Meeting{"--master-addr 127.0.0.1", "127.0.0.1 [0-9]+ 0 1"},
        Meeting{"--master_addr localhost", "localhost [0-9]+ 0 1"},
        Meeting{
            "--master-addr 127.0.0.1 --master-port 29500 --nnodes 1 "
            "--node-rank 0",
            "127.0.0.1 29500 0 1"},
        Meeting{"--master-port 29999", "127.0.0.1 29999 0 1"},
        Meeting{"--rdzv-endpoint localhost", "localhost 29500 0 1"},
        Meeting{"--rdzv-endpoint :29999", "127.0.0.1 29999 0 1"},
        Meeting{
            "--rdzv-endpoint 127.0.0.1:29999 --master-addr localhost",
            "127.0.0.1 29999 0 1"},
        Meeting{
            "--master-addr 192.0.2.1",
            "127.0.0.1 [0-9]+ 0 1",
            "192.0.2.1 is not an address of this machine"},
        Meeting{
            "--rdzv-endpoint 192.0.2.1:29999",
            "127.0.0.1 29999 0 1",
            "192.0.2.1 is not an address of this machine"},
        Meeting{"--master-addr $(hostname)", kHost + " [0-9]+ 0 1"},
        Meeting{"--standalone", "127.0.0.1 [0-9]+ 0 1"},
        Meeting{
            "--standalone --master-port 29999",
            "127.0.0.1 [0-9]+ 0 1",
            "have no effect with --standalone"}));

INSTANTIATE_TEST_SUITE_P(
    SeveralMachinesOnOne,
    MeetingPlace,
    testing::Values(
        Meeting{
            "--nnodes 2 --node-rank 1 --master-addr 127.0.0.1 "
            "--master-port 29999",
            "127.0.0.1 29999 1 2",
            "all 2 nodes must be started on this one"},
        Meeting{
            "--nnodes 2 --master-addr localhost",
            "localhost 29500 0 2",
            "all 2 nodes must be started on this one"},
        Meeting{
            "--nnodes 2 --master-addr ::1",
            "::1 29500 0 2",
            "all 2 nodes must be started on this one"},
        Meeting{
            "--nnodes 2 --rdzv-endpoint [::1]:29999",
            "::1 29999 0 2",
            "all 2 nodes must be started on this one"},
        Meeting{"--nnodes 2 --master-addr 192.0.2.1", "192.0.2.1 29500 0 2"}));

// With a note where the machine has no version 6.
TEST(Master, MayBeTheLoopbackOfVersion6) {
  const bool is_here = can_listen("::1", 0);
  for (const std::string flags :
       {"--master-addr ::1",
        "--master-addr [::1]",
        "--rdzv-endpoint [::1]:0"}) {
    const auto outcome = run_rank(flags, "echo $MASTER_ADDR");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, is_here ? "::1\n" : "127.0.0.1\n") << flags;
    EXPECT_EQ(outcome.err.empty(), is_here) << outcome.err;
  }
}

} // namespace
} // namespace lockstep::launch
