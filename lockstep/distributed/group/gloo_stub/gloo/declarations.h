// SPDX-License-Identifier: BSD-3-Clause
//
// The classes of Gloo that LibTorch's ProcessGroupGloo.hpp names. The wheel
// holds Gloo itself but not its headers. Nothing here is made or derived from
// in Lockstep, so the declarations need not be complete.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
  void closeConnections();
};

namespace transport {
class Device;
class UnboundBuffer;
} // namespace transport

namespace rendezvous {

class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& data) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(
      const std::vector<std::string>& keys,
      const std::chrono::milliseconds& timeout) = 0;
};

} // namespace rendezvous
} // namespace gloo
