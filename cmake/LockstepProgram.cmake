# How programs that are handed out are compiled and linked.

# With LOCKSTEP_HARDENING. The macro is set anew: some compilers come with a value.
# It does nothing but warn where nothing is optimised.
function(lockstep_harden target)
  if(NOT LOCKSTEP_HARDENING)
    return()
  endif()
  target_compile_options(${target} PRIVATE -fstack-protector-strong
    "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "STATIC_LIBRARY")
    target_link_options(${target} PRIVATE LINKER:-z,relro,-z,now)
  endif()
endfunction()

# Whether a program can be linked so, and started: _lockstep_links(RESULT RUN OPTION...)
function(_lockstep_links result run)
  include(CheckCXXSourceCompiles)
  include(CheckCXXSourceRuns)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${ARGN})
  set(source "#include <string>\nint main() { return 0; }")
  if(run AND NOT (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR))
    check_cxx_source_runs("${source}" ${result})
  else()
    check_cxx_source_compiles("${source}" ${result})
  endif()
  if(NOT ${result} STREQUAL "1") # FAILED_TO_RUN, tried each time
    set(${result} OFF CACHE INTERNAL "")
  endif()
endfunction()

# A static program that is still loaded at a random address, where all libraries
# can be linked so and the system starts it; sanitizers cannot. Else the compiler's
# libraries alone, where they are there as static ones (Fedora has a package for them).
function(_lockstep_static_options result)
  set(options "")
  if(LOCKSTEP_STATIC_PROGRAM)
    _lockstep_links(LOCKSTEP_STATIC_PIE_WORKS ON -static-pie)
    if(LOCKSTEP_STATIC_PIE_WORKS AND NOT CMAKE_CXX_FLAGS MATCHES "fsanitize"
        AND Nettle_STATIC_LIBRARY AND PCRE2_STATIC_LIBRARY AND libdeflate_STATIC_LIBRARY)
      set(options -static-pie)
    else()
      _lockstep_links(LOCKSTEP_STATIC_RUNTIME_WORKS OFF -static-libstdc++ -static-libgcc)
      if(LOCKSTEP_STATIC_RUNTIME_WORKS)
        set(options -static-libstdc++ -static-libgcc)
      endif()
    endif()
  endif()
  get_property(said GLOBAL PROPERTY LOCKSTEP_LINKING_SAID)
  if(NOT said)
    set(words dynamically)
    if(options)
      list(JOIN options " " words)
    endif()
    message(STATUS "How programs without LibTorch are linked: ${words}")
    set_property(GLOBAL PROPERTY LOCKSTEP_LINKING_SAID TRUE)
  endif()
  set(${result} "${options}" PARENT_SCOPE)
endfunction()
