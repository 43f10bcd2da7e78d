// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "lockstep/base/internal/shared_library.h"
#include "lockstep/parallel/replica_group.h"

namespace lockstep::parallel {
namespace {

// No link to OpenMP: a second runtime beside the wheel's would have numbers of
// its own. The global scope finds the functions that LibTorch itself calls.
struct Runtimes {
  void (*set_openmp)(int) = nullptr;
  // Returns what was set before in this thread, 0 if nothing. (The name in
  // small letters is Fortran's, which takes an address.)
  int (*set_mkl)(int) = nullptr;
  bool is_usable = false;
};

Runtimes find_runtimes() {
  Runtimes found;
  find_function(RTLD_DEFAULT, "omp_set_num_threads", found.set_openmp);
  if (at::hasMKL()) {
    find_function(RTLD_DEFAULT, "MKL_Set_Num_Threads_Local", found.set_mkl);
  }
  if (found.set_openmp == nullptr ||
      (at::hasMKL() && found.set_mkl == nullptr)) {
    return found;
  }
  // Some other library's OpenMP may have been found: LibTorch has the last
  // word.
  const int own = at::get_num_threads();
  found.set_openmp(own + 1);
  found.is_usable = at::get_num_threads() == own + 1;
  found.set_openmp(own);
  if (found.set_mkl != nullptr) {
    const int own_mkl = found.set_mkl(own + 1);
    found.is_usable = found.set_mkl(own_mkl) == own + 1 && found.is_usable;
  }
  return found;
}

const Runtimes& runtimes() {
  static const Runtimes found = find_runtimes();
  return found;
}

} // namespace

bool IntraOpThreadsGuard::is_available() {
  return runtimes().is_usable;
}

// get_num_threads also makes LibTorch copy the process's number into this
// thread, which it does once and would else do later, over ours.
IntraOpThreadsGuard::IntraOpThreadsGuard(int threads)
    : saved_(at::get_num_threads()) {
  runtimes().set_openmp(threads);
  if (runtimes().set_mkl != nullptr) {
    saved_mkl_ = runtimes().set_mkl(threads);
  }
}

IntraOpThreadsGuard::~IntraOpThreadsGuard() {
  runtimes().set_openmp(saved_);
  if (runtimes().set_mkl != nullptr) {
    runtimes().set_mkl(saved_mkl_);
  }
}

} // namespace lockstep::parallel
