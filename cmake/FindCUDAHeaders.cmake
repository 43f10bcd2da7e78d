# Finds the headers of the CUDA runtime, which some of LibTorch's headers want.
# The packages that come with a CUDA wheel of torch lie beside it and hold them,
# so no toolkit is needed. Not found beside a CPU wheel, which has nothing to
# link to. Sets CUDAHeaders_FOUND and CUDAHeaders_INCLUDE_DIRS.
cmake_path(GET LibTorch_ROOT PARENT_PATH _site)
set(_cuda "${_site}/nvidia/cu13/include" "${_site}/nvidia/cuda_runtime/include"
  /usr/local/cuda/include)
if(EXISTS "${LibTorch_ROOT}/lib/libtorch_cuda.so")
  find_path(CUDAHeaders_RUNTIME cuda_runtime_api.h HINTS ${_cuda})
  # What nvidia's packages leave out; macros only.
  find_path(CUDAHeaders_CRT crt/host_defines.h HINTS
    ${_cuda} "${_site}/triton/backends/nvidia/include")
  mark_as_advanced(CUDAHeaders_RUNTIME CUDAHeaders_CRT)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDAHeaders REQUIRED_VARS
  CUDAHeaders_RUNTIME CUDAHeaders_CRT)
set(CUDAHeaders_INCLUDE_DIRS "${CUDAHeaders_RUNTIME}" "${CUDAHeaders_CRT}")
