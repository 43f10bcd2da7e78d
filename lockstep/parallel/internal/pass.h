// SPDX-License-Identifier: BSD-3-Clause
//
// One forward of a ReplicaGroup, in its phases:
//   Pass pass(parts, inputs, call);
//   pass.split();            // the batch, one shard for each replica
//   pass.follow();           // replicas become what the module is now
//   pass.run();              // all of them, each in its thread
//   pass.gate();             // what they left: errors, ends of their graphs
//   return pass.join();      // one result, with one node behind it
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <c10/core/Stream.h>

#include "lockstep/parallel/internal/join_node.h"
#include "lockstep/parallel/internal/replica_set.h"
#include "lockstep/parallel/replica_group.h"

namespace lockstep::parallel {

/// What all passes of a group use.
struct PassParts {
  std::shared_ptr<PassContext> context;
  ReplicaSet replicas;
  /// For batches on their way from the host.
  std::vector<c10::Stream> copy_streams;
  bool is_connected = false;
  StrangerCheck check_strangers = {};
};

/// Call each phase once, in the order of the file; after an error none.
/// Ownership: borrows what it is given.
/// Threads: one pass at a time.
/// Errors: see `ReplicaGroup::forward`.
class Pass {
 public:
  Pass(
      PassParts& parts,
      const TensorList& inputs,
      const ReplicaGroup::Call& call);

  void split();
  void follow();
  void run();
  void gate();
  TensorList join();

 private:
  ReplicaPass run_replica(std::size_t index);

  PassParts& parts_;
  const ReplicaGroup::Call& call_;
  std::vector<TensorList> shards_ = {};
  std::vector<std::string> forms_ = {};
  std::vector<std::string> numbers_ = {};
  /// By replica: what its forward registered, if anything.
  std::vector<std::string> registered_ = {};
  JoinPlan plan_;
};

} // namespace lockstep::parallel
