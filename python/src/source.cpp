// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/source.h"

#include <span>

namespace lockstep::python {
namespace nb = nanobind;

std::shared_ptr<ckpt::ByteSource> bytes_source(const nb::bytes& data) {
  const std::shared_ptr<nb::bytes> owner(
      new nb::bytes(data), // NOLINT(cppcoreguidelines-owning-memory)
      [](nb::bytes* held) {
        const nb::gil_scoped_acquire lock;
        delete held; // NOLINT(cppcoreguidelines-owning-memory)
      });
  return ckpt::make_source(
      std::as_bytes(std::span(data.c_str(), data.size())),
      owner);
}

} // namespace lockstep::python
