// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ side of bench/serve.py: a peer prepares, prints one JSON line
// ("ready"), then answers every line on stdin with one round of work.
#pragma once

#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

namespace lockstep::bench {

/// Prints `ready`, then one JSON line of `run_round(line)` per input line.
template <class RunRound>
void serve(nlohmann::json ready, const RunRound& run_round) {
  ready["ready"] = true;
  std::cout << ready.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << nlohmann::json(run_round(line)).dump() << std::endl;
  }
}

} // namespace lockstep::bench
