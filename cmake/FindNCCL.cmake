# Finds NCCL's header, in the package that comes with a CUDA wheel of torch.
# Sets NCCL_FOUND and NCCL_INCLUDE_DIRS, with the headers of the CUDA runtime.
find_package(CUDAHeaders QUIET)
cmake_path(GET LibTorch_ROOT PARENT_PATH _site)
find_path(NCCL_INCLUDE_DIR nccl.h
  HINTS "${_site}/nvidia/nccl/include" "${CUDAHeaders_RUNTIME}")
mark_as_advanced(NCCL_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS
  NCCL_INCLUDE_DIR CUDAHeaders_FOUND)
set(NCCL_INCLUDE_DIRS "${NCCL_INCLUDE_DIR}" ${CUDAHeaders_INCLUDE_DIRS})
