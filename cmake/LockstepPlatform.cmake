# What Lockstep needs of a platform. What is missing stops here, in one line;
# what was never tried is said.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "Lockstep needs Linux, and this is ${CMAKE_SYSTEM_NAME}: "
    "it uses /proc, renameat2 and copy_file_range.")
endif()
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  message(FATAL_ERROR "Lockstep needs 64-bit addresses: it maps whole files.")
endif()
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16))
  message(FATAL_ERROR "Lockstep needs GCC 12 or Clang 16, or newer; this is "
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}.")
elseif(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  message(WARNING "Lockstep was never compiled by ${CMAKE_CXX_COMPILER_ID}.")
endif()

include(CheckCXXSymbolExists)
check_cxx_symbol_exists(__GLIBC__ "features.h" LOCKSTEP_HAVE_GLIBC)
set(_libc glibc)
if(NOT LOCKSTEP_HAVE_GLIBC)
  set(_libc "another C library than glibc, which was never tried")
endif()
if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  if(LOCKSTEP_WITH_TORCH)
    message(FATAL_ERROR "The part with LibTorch needs a little-endian machine: "
      "configure with -DLOCKSTEP_WITH_TORCH=OFF.")
  endif()
  string(APPEND _libc ", big-endian")
endif()
message(STATUS "Lockstep ${PROJECT_VERSION} on ${CMAKE_SYSTEM_NAME} "
  "${CMAKE_SYSTEM_PROCESSOR}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${_libc}")
