// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/reading.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include <nanobind/stl/string.h>

#include "python/src/text.h"

namespace lockstep::python {
namespace nb = nanobind;
namespace {

std::string name_of(const ckpt::LimitInfo& limit) {
  std::string name(limit.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

} // namespace

ckpt::LoadOptions load_options(const nb::dict& how) {
  ckpt::LoadOptions options{
      .use_mmap = nb::cast<bool>(how["mmap"]),
      .check_tensor_crc = nb::cast<bool>(how["check_crc"])};
  if (!how["byteorder"].is_none()) {
    options.byteorder = nb::cast<std::string>(how["byteorder"]) == "big"
                            ? std::endian::big
                            : std::endian::little;
  }
  const auto limits = nb::cast<nb::dict>(how["limits"]);
  for (const ckpt::LimitInfo& row : ckpt::limit_table()) {
    if (const std::string name = name_of(row); limits.contains(name.c_str())) {
      options.limits.*row.member =
          nb::cast<std::uint64_t>(limits[name.c_str()]);
    }
  }
  return options;
}

nb::list limit_names() {
  nb::list names;
  for (const ckpt::LimitInfo& row : ckpt::limit_table()) {
    names.append(text(name_of(row)));
  }
  return names;
}

} // namespace lockstep::python
