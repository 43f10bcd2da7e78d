// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/source.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::python {
namespace nb = nanobind;
namespace {

class BytesSource final : public ckpt::ByteSource {
 public:
  explicit BytesSource(const nb::bytes& data)
      : held_(data),
        inner_(ckpt::make_source(
            std::as_bytes(std::span(data.c_str(), data.size())))) {}
  ~BytesSource() override {
    const nb::gil_scoped_acquire held;
    held_.reset();
  }
  BytesSource(const BytesSource&) = delete;
  BytesSource& operator=(const BytesSource&) = delete;

  [[nodiscard]] std::uint64_t size() const override {
    return inner_->size();
  }
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    return inner_->view(offset, length, scratch);
  }
  [[nodiscard]] bool is_stable() const override {
    return true;
  }

 private:
  nb::object held_;
  std::shared_ptr<ckpt::ByteSource> inner_;
};

} // namespace

std::shared_ptr<ckpt::ByteSource> bytes_source(const nb::bytes& data) {
  return std::make_shared<BytesSource>(data);
}

} // namespace lockstep::python
