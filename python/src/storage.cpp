// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/storage.h"

#include <array>
#include <cstddef>

#include "python/src/errors.h"

namespace lockstep::python {
namespace nb = nanobind;
namespace {

// Python's signature. Errors: -1, with Python's exception set.
int fill_view(PyObject* self, Py_buffer* view, int flags) noexcept {
  static std::byte nothing{}; // an empty storage has an address, too
  const ByteSpan bytes = nb::inst_ptr<StorageBuffer>(self)->bytes();
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): C has no const
  auto* data = bytes.empty() ? &nothing : const_cast<std::byte*>(bytes.data());
  constexpr int kReadOnly = 1;
  return PyBuffer_FillInfo(
      view,
      self,
      data,
      static_cast<Py_ssize_t>(bytes.size()),
      kReadOnly,
      flags);
}

} // namespace

nb::object make_storage_buffer(
    const ckpt::Storage& storage,
    const std::string& path) {
  auto loaded = [&] {
    const nb::gil_scoped_release others_run;
    return storage.source->load();
  }();
  return nb::cast(StorageBuffer(storage.source, take(std::move(loaded), path)));
}

void register_storage(nb::module_& module) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): Python's way
  void* const fill = reinterpret_cast<void*>(&fill_view);
  static std::array<PyType_Slot, 2> slots{
      {{Py_bf_getbuffer, fill}, {0, nullptr}}};
  nb::class_<StorageBuffer>(
      module,
      "Storage",
      nb::type_slots(slots.data()),
      "The bytes that arrays of one storage share; read-only.")
      .def_prop_ro("nbytes", [](const StorageBuffer& self) {
        return self.bytes().size();
      });
}

} // namespace lockstep::python
