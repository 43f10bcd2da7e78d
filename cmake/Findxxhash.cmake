# Debian ships xxhash without a CMake file. Defines xxhash::xxhash (static where
# the static library exists: the torch-free programs start faster with it).
find_path(xxhash_INCLUDE_DIR xxhash.h)
find_library(xxhash_LIBRARY NAMES libxxhash.a xxhash)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xxhash
  REQUIRED_VARS xxhash_LIBRARY xxhash_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Run scripts/setup.sh, or apt-get install libxxhash-dev.")
if(xxhash_FOUND AND NOT TARGET xxhash::xxhash)
  add_library(xxhash::xxhash UNKNOWN IMPORTED)
  set_target_properties(xxhash::xxhash PROPERTIES
    IMPORTED_LOCATION "${xxhash_LIBRARY}")
  target_include_directories(xxhash::xxhash SYSTEM INTERFACE
    "${xxhash_INCLUDE_DIR}")
endif()
mark_as_advanced(xxhash_INCLUDE_DIR xxhash_LIBRARY)
