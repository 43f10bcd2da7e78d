# SPDX-License-Identifier: BSD-3-Clause
"""The checkpoint library and the program `lockstep`, without LibTorch:

    conan create packaging/conan -s compiler.cppstd=20

libdeflate, nettle, PCRE2, fmt, nlohmann_json and CLI11 are the system's.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt

SOURCES = ("CMakeLists.txt", "LICENSE", "cmake/*", "lockstep/*", "cli/*",
           "docs/errors.md", "docs/error_details.md", "scripts/gather_licenses.sh")


class LockstepCkpt(ConanFile):
    name = "lockstep-ckpt"
    description = "PyTorch's checkpoint files, read, checked and changed without Python"
    # Of Lockstep, then of what a static program or library is linked with.
    license = ("BSD-3-Clause AND MIT AND (LGPL-3.0-or-later OR GPL-2.0-or-later)"
               " AND LGPL-2.1-or-later AND GPL-3.0-or-later WITH GCC-exception-3.1")
    topics = ("pytorch", "checkpoint", "safetensors")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "program": [True, False]}
    default_options = {"shared": False, "program": True}

    def set_version(self):
        header = load(self, os.path.join(
            self.recipe_folder, "../../lockstep/base/version.h"))
        self.version = re.search(r'kVersion = "([0-9.]+)"', header)[1]

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, os.path.join(self.recipe_folder, "../.."),
                 self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("Lockstep needs Linux")
        check_min_cppstd(self, 20)

    def system_requirements(self):
        packages = ["libdeflate-dev", "nettle-dev", "libpcre2-dev", "libfmt-dev"]
        if self.options.program:
            packages += ["nlohmann-json3-dev", "libcli11-dev"]
        Apt(self).install(packages)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["LOCKSTEP_WITH_TORCH"] = False
        toolchain.cache_variables["LOCKSTEP_BUILD_TESTS"] = False
        toolchain.cache_variables["LOCKSTEP_BUILD_CLI"] = bool(self.options.program)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder,
             os.path.join(self.package_folder, "licenses"))
        # Debian's texts of what is linked in; other systems keep them elsewhere.
        script = os.path.join(self.source_folder, "scripts/gather_licenses.sh")
        folder = os.path.join(self.package_folder, "licenses/linked")
        if self.run(f'bash "{script}" "{folder}"', ignore_errors=True) != 0:
            self.output.warning(
                "this package lacks the licences of the libraries linked into it"
                " (nettle and glibc are LGPL): add them to licenses/linked"
                " before you hand it on")
        CMake(self).install()

    def package_info(self):
        # What is installed brings its own CMake package.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/Lockstep"]
        self.cpp_info.set_property("pkg_config_name", "lockstep-ckpt")
        if self.options.shared:
            self.cpp_info.libs = ["lockstep-ckpt"]
        else:
            self.cpp_info.libs = ["lockstep_ckpt", "lockstep_base"]
            self.cpp_info.system_libs = ["deflate", "nettle", "pcre2-8"]
