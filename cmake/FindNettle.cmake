# Debian ships nettle without a CMake file. Defines Nettle::nettle (static where
# the static library exists: the torch-free programs start faster with it).
find_path(Nettle_INCLUDE_DIR nettle/sha2.h)
find_library(Nettle_LIBRARY NAMES libnettle.a nettle)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Nettle
  REQUIRED_VARS Nettle_LIBRARY Nettle_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Run scripts/setup.sh, or apt-get install nettle-dev.")
if(Nettle_FOUND AND NOT TARGET Nettle::nettle)
  add_library(Nettle::nettle UNKNOWN IMPORTED)
  set_target_properties(Nettle::nettle PROPERTIES
    IMPORTED_LOCATION "${Nettle_LIBRARY}")
  target_include_directories(Nettle::nettle SYSTEM INTERFACE
    "${Nettle_INCLUDE_DIR}")
endif()
mark_as_advanced(Nettle_INCLUDE_DIR Nettle_LIBRARY)
