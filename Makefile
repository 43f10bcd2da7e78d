# Each target calls one script; see scripts/.
.PHONY: setup build demo test lint bench fuzz timings format clean

setup:
	@scripts/setup.sh
build: setup
	@scripts/build.sh release
demo: setup
	@scripts/build.sh release lockstep lockstep-train
	@scripts/demo.sh
test: build
	@scripts/test.sh
lint: setup
	@scripts/lint.sh
bench: build
	@scripts/bench.sh
fuzz: setup
	@scripts/fuzz.sh
timings: setup
	@scripts/timings.sh
format:
	@scripts/format.sh
clean:
	rm -rf build
