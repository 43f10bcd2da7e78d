# The shared libraries: liblockstep-ckpt.so without LibTorch, liblockstep.so with
# it, each of the objects of the static ones. Included when all of those are
# declared.

# A shared library of the objects and the headers of libraries. It shows what the
# public headers declare (`#pragma GCC visibility`, cmake/lockstep.map), and
# outside of the project it takes the names lockstep::X of the libraries in it.
function(lockstep_shared)
  cmake_parse_arguments(arg "TORCH" "NAME;OUTPUT" "OF" ${ARGN})
  set(target lockstep_${arg_NAME}_shared)
  set(map "${PROJECT_SOURCE_DIR}/cmake/lockstep.map")
  add_library(${target} SHARED)
  target_link_libraries(${target} PUBLIC lockstep_options)
  foreach(part IN LISTS arg_OF)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:lockstep_${part}>)
    get_target_property(headers lockstep_${part} HEADER_SET)
    if(headers)
      target_sources(${target} PUBLIC FILE_SET HEADERS
        BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
    endif()
    get_target_property(linked lockstep_${part} LINK_LIBRARIES)
    list(FILTER linked EXCLUDE REGEX "lockstep_|LibTorch::torch_cpu|-NOTFOUND$")
    target_link_libraries(${target} PRIVATE ${linked})
    if(BUILD_SHARED_LIBS AND NOT TARGET lockstep::${part})
      add_library(lockstep::${part} ALIAS ${target})
    endif()
  endforeach()
  if(arg_TORCH)
    target_link_libraries(${target} PUBLIC LibTorch::torch_cpu Threads::Threads)
  endif()
  target_link_options(${target} PRIVATE "LINKER:--version-script,${map}" LINKER:--no-undefined)
  lockstep_harden(${target})
  set(version ${PROJECT_VERSION})
  if(NOT LOCKSTEP_NAMELINKS) # then its file is what programs look for
    set(version ${LOCKSTEP_SOVERSION})
  endif()
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${arg_NAME} OUTPUT_NAME ${arg_OUTPUT} LINKER_LANGUAGE CXX
    VERSION ${version} SOVERSION ${LOCKSTEP_SOVERSION} LINK_DEPENDS "${map}")
endfunction()

# For a static build, too, when there are tests: they look at what it shows.
if(BUILD_SHARED_LIBS OR LOCKSTEP_BUILD_TESTS)
  lockstep_shared(NAME ckpt OUTPUT lockstep-ckpt OF base ckpt)
endif()
if(BUILD_SHARED_LIBS AND LOCKSTEP_WITH_TORCH)
  get_property(_parts GLOBAL PROPERTY LOCKSTEP_TORCH_LIBRARIES)
  list(TRANSFORM _parts REPLACE "^lockstep_" "")
  lockstep_shared(TORCH NAME lockstep OUTPUT lockstep
    OF base ckpt settings report launch ${_parts})
  target_sources(lockstep_lockstep_shared
    PUBLIC FILE_SET HEADERS FILES "${PROJECT_SOURCE_DIR}/lockstep/lockstep.h")
  add_library(lockstep::lockstep ALIAS lockstep_lockstep_shared)
  add_dependencies(lockstep_lockstep_shared lockstep_sim)
endif()
