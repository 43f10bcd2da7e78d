# Debian ships libwebp without a CMake file. Defines WebP::webp.
find_path(WebP_INCLUDE_DIR webp/decode.h)
find_library(WebP_LIBRARY NAMES webp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(WebP
  REQUIRED_VARS WebP_LIBRARY WebP_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Run scripts/setup.sh, or apt-get install libwebp-dev.")
if(WebP_FOUND AND NOT TARGET WebP::webp)
  add_library(WebP::webp UNKNOWN IMPORTED)
  set_target_properties(WebP::webp PROPERTIES IMPORTED_LOCATION "${WebP_LIBRARY}")
  target_include_directories(WebP::webp SYSTEM INTERFACE "${WebP_INCLUDE_DIR}")
endif()
mark_as_advanced(WebP_INCLUDE_DIR WebP_LIBRARY)
