// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/sim/generator.h"

#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>

#include "lockstep/sim/devices.h"

namespace lockstep::sim {
namespace {

class SimGenerator final : public c10::GeneratorImpl {
 public:
  SimGenerator(c10::DeviceIndex index, at::Generator cpu)
      : GeneratorImpl(
            sim_device(index),
            c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        cpu_(std::move(cpu)) {}

  const at::Generator& cpu() const noexcept {
    return cpu_;
  }
  void set_current_seed(std::uint64_t seed) override {
    impl().set_current_seed(seed);
  }
  std::uint64_t current_seed() const override {
    return impl().current_seed();
  }
  std::uint64_t seed() override {
    return impl().seed();
  }
  void set_offset(std::uint64_t offset) override {
    impl().set_offset(offset);
  }
  std::uint64_t get_offset() const override {
    return impl().get_offset();
  }
  void set_state(const c10::TensorImpl& state) override {
    impl().set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return impl().get_state();
  }

 private:
  c10::GeneratorImpl& impl() const {
    return *cpu_.unsafeGetGeneratorImpl();
  }
  SimGenerator* clone_impl() const override {
    return new SimGenerator(device_.index(), cpu_.clone());
  }

  at::Generator cpu_;
};

c10::DeviceIndex or_current(c10::DeviceIndex index) {
  const c10::DeviceIndex chosen = index == -1 ? current_device() : index;
  check_index(chosen);
  return chosen;
}

} // namespace

at::Generator new_generator(c10::DeviceIndex index) {
  return at::make_generator<SimGenerator>(
      or_current(index),
      at::detail::createCPUGenerator());
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static const auto* const generators = [] {
    auto* list = new std::vector<at::Generator>();
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) {
      list->push_back(new_generator(i));
    }
    return list;
  }();
  return generators->at(static_cast<std::size_t>(or_current(index)));
}

const at::Generator& cpu_generator(const at::Generator& generator) {
  const auto* sim =
      dynamic_cast<const SimGenerator*>(generator.unsafeGetGeneratorImpl());
  TORCH_CHECK(
      sim != nullptr,
      "Expected a 'sim' device type for generator but found '",
      generator.device().type(),
      "'");
  return sim->cpu();
}

} // namespace lockstep::sim
