# What find_package(Lockstep) says where a part is missing.

# Conan sets it; the libraries' own CMake files would not do.
set(CMAKE_FIND_PACKAGE_PREFER_CONFIG ON)

function(expect name pattern)
  if(NOT "${${name}}" MATCHES "${pattern}")
    message(SEND_ERROR "${name} is '${${name}}', expected ${pattern}")
  endif()
endfunction()

set(CMAKE_MODULE_PATH mine)
set(CMAKE_DISABLE_FIND_PACKAGE_Nettle ON)
find_package(Lockstep QUIET)
expect(Lockstep_FOUND "^(0|False)$")
expect(CMAKE_MODULE_PATH "^mine$")
set(CMAKE_DISABLE_FIND_PACKAGE_Nettle OFF)
find_package(Lockstep QUIET COMPONENTS ckpt models)
expect(Lockstep_FOUND "^(0|FALSE)$")
expect(Lockstep_NOT_FOUND_MESSAGE "no component 'models'")
unset(Lockstep_NOT_FOUND_MESSAGE)

# LibTorch is not found here, or that component is not installed.
find_package(Lockstep REQUIRED COMPONENTS ckpt OPTIONAL_COMPONENTS torch)
expect(Lockstep_torch_FOUND "^FALSE$")
expect(Lockstep_ckpt_FOUND "^TRUE$")
if(NOT TARGET lockstep::ckpt OR TARGET lockstep::lockstep)
  message(SEND_ERROR "expected lockstep::ckpt, and no lockstep::lockstep")
endif()
find_package(Lockstep QUIET COMPONENTS torch)
expect(Lockstep_FOUND "^(0|False|FALSE)$")

# The search leaves no variables behind but those with the names of packages.
get_cmake_property(names VARIABLES)
list(FILTER names INCLUDE REGEX "^_(lockstep|LibTorch)_|^_?(needed|name|folder|components)$")
expect(names "^$")
expect(LibTorch_BESIDE "^$")
