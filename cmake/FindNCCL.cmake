# Finds the headers of NCCL and of the CUDA runtime, which LibTorch's header for
# NCCL wants. The packages that come with a CUDA wheel of torch lie beside it
# and hold them, so no toolkit is needed. Sets NCCL_FOUND and NCCL_INCLUDE_DIRS.
cmake_path(GET LibTorch_ROOT PARENT_PATH _site)
set(_cuda "${_site}/nvidia/cu13/include" "${_site}/nvidia/cuda_runtime/include"
  /usr/local/cuda/include)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS "${_site}/nvidia/nccl/include" ${_cuda})
find_path(NCCL_CUDA_INCLUDE_DIR cuda_runtime_api.h HINTS ${_cuda})
# What nvidia's packages leave out; macros only.
find_path(NCCL_CRT_INCLUDE_DIR crt/host_defines.h HINTS
  ${_cuda} "${_site}/triton/backends/nvidia/include")
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_CUDA_INCLUDE_DIR NCCL_CRT_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS
  NCCL_INCLUDE_DIR NCCL_CUDA_INCLUDE_DIR NCCL_CRT_INCLUDE_DIR)
set(NCCL_INCLUDE_DIRS
  "${NCCL_INCLUDE_DIR}" "${NCCL_CUDA_INCLUDE_DIR}" "${NCCL_CRT_INCLUDE_DIR}")
