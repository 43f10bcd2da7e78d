# Debian ships nettle without a CMake file. Defines Nettle::nettle: the shared
# library where there is one, but the static one for LOCKSTEP_STATIC_PROGRAM.
# Nettle_LIBRARY and Nettle_STATIC_LIBRARY name others.
find_path(Nettle_INCLUDE_DIR nettle/sha2.h)
find_library(Nettle_LIBRARY NAMES nettle)
find_library(Nettle_STATIC_LIBRARY NAMES libnettle.a)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Nettle
  REQUIRED_VARS Nettle_LIBRARY Nettle_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Run scripts/setup.sh, or apt-get install nettle-dev.")
if(Nettle_FOUND AND NOT TARGET Nettle::nettle)
  add_library(Nettle::nettle UNKNOWN IMPORTED)
  if(LOCKSTEP_STATIC_PROGRAM AND Nettle_STATIC_LIBRARY)
    set_target_properties(Nettle::nettle PROPERTIES
      IMPORTED_LOCATION "${Nettle_STATIC_LIBRARY}")
  else()
    set_target_properties(Nettle::nettle PROPERTIES
      IMPORTED_LOCATION "${Nettle_LIBRARY}")
  endif()
  target_include_directories(Nettle::nettle SYSTEM INTERFACE
    "${Nettle_INCLUDE_DIR}")
endif()
mark_as_advanced(Nettle_INCLUDE_DIR Nettle_LIBRARY Nettle_STATIC_LIBRARY)
