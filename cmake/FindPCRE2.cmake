# Debian ships PCRE2 without a CMake file. Defines PCRE2::pcre2-8: the shared
# library where there is one, but the static one for LOCKSTEP_STATIC_PROGRAM.
# PCRE2_LIBRARY and PCRE2_STATIC_LIBRARY name others.
find_path(PCRE2_INCLUDE_DIR pcre2.h)
find_library(PCRE2_LIBRARY NAMES pcre2-8)
find_library(PCRE2_STATIC_LIBRARY NAMES libpcre2-8.a)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PCRE2
  REQUIRED_VARS PCRE2_LIBRARY PCRE2_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Run scripts/setup.sh, or apt-get install libpcre2-dev.")
if(PCRE2_FOUND AND NOT TARGET PCRE2::pcre2-8)
  add_library(PCRE2::pcre2-8 UNKNOWN IMPORTED)
  if(LOCKSTEP_STATIC_PROGRAM AND PCRE2_STATIC_LIBRARY)
    set_target_properties(PCRE2::pcre2-8 PROPERTIES
      IMPORTED_LOCATION "${PCRE2_STATIC_LIBRARY}")
  else()
    set_target_properties(PCRE2::pcre2-8 PROPERTIES
      IMPORTED_LOCATION "${PCRE2_LIBRARY}")
  endif()
  target_include_directories(PCRE2::pcre2-8 SYSTEM INTERFACE
    "${PCRE2_INCLUDE_DIR}")
endif()
mark_as_advanced(PCRE2_INCLUDE_DIR PCRE2_LIBRARY PCRE2_STATIC_LIBRARY)
