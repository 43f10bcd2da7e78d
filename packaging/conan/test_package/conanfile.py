# SPDX-License-Identifier: BSD-3-Clause
"""A program that links the package, runs, and finds the program beside it."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class LockstepCkptTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str, run=True)  # finds `lockstep`, too

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            # LOCKSTEP_PTH: another checkpoint to read, too.
            program = os.path.join(self.cpp.build.bindir, "round_trip")
            file = os.environ.get("LOCKSTEP_PTH", "round_trip.pt")
            self.run(program, env="conanrun")
            self.run(f"{program} round_trip.pt {file}", env="conanrun")
            if self.dependencies[self.tested_reference_str].options.program:
                self.run("lockstep --version", env="conanrun")
                self.run(f"lockstep ckpt {file}", env="conanrun")
