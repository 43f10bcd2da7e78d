# Debian ships libdeflate without a CMake file. Defines libdeflate::libdeflate: the shared
# library where there is one, but the static one for LOCKSTEP_STATIC_PROGRAM.
# libdeflate_LIBRARY and libdeflate_STATIC_LIBRARY name others.
find_path(libdeflate_INCLUDE_DIR libdeflate.h)
find_library(libdeflate_LIBRARY NAMES deflate)
find_library(libdeflate_STATIC_LIBRARY NAMES libdeflate.a)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(libdeflate
  REQUIRED_VARS libdeflate_LIBRARY libdeflate_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Run scripts/setup.sh, or apt-get install libdeflate-dev.")
if(libdeflate_FOUND AND NOT TARGET libdeflate::libdeflate)
  add_library(libdeflate::libdeflate UNKNOWN IMPORTED)
  if(LOCKSTEP_STATIC_PROGRAM AND libdeflate_STATIC_LIBRARY)
    set_target_properties(libdeflate::libdeflate PROPERTIES
      IMPORTED_LOCATION "${libdeflate_STATIC_LIBRARY}")
  else()
    set_target_properties(libdeflate::libdeflate PROPERTIES
      IMPORTED_LOCATION "${libdeflate_LIBRARY}")
  endif()
  target_include_directories(libdeflate::libdeflate SYSTEM INTERFACE
    "${libdeflate_INCLUDE_DIR}")
endif()
mark_as_advanced(libdeflate_INCLUDE_DIR libdeflate_LIBRARY libdeflate_STATIC_LIBRARY)
