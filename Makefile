# Each target calls one script or two; see scripts/. Only `setup` installs anything
# (with sudo, and pip into .venv), for demo, test, lint, bench, fuzz and timings.
.PHONY: setup build demo test lint bench fuzz timings packages format clean

setup:
	@scripts/setup.sh
build:
	@scripts/build.sh release
demo: setup
	@scripts/build.sh release lockstep lockstep-train
	@scripts/demo.sh
test: setup
	@scripts/build.sh release
	@scripts/test.sh
lint: setup
	@scripts/lint.sh
bench: setup
	@scripts/build.sh release
	@scripts/bench.sh
fuzz: setup
	@scripts/fuzz.sh
timings: setup
	@scripts/timings.sh
packages:
	@scripts/packages.sh
format:
	@scripts/format.sh
clean:
	rm -rf build
