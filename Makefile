# A thin front of CMake. Sets a fresh Debian machine up as far as a target needs it.
#   make run [MODEL=FILE|smollm2|gemma3] [PROMPT="..."]     make test     make bench
#   BUILD=DIR   builds there and keeps the models there; writes nothing in the source tree
#   PRESET=...  release (default), debug, asan, tsan, ci, clang, fuzz
BUILD  ?= build
PRESET ?= release
MODELS ?= $(if $(filter build,$(BUILD)),models,$(BUILD)/models)
MODEL  ?= smollm2
PROMPT ?= Why is the sky blue? Answer in two sentences.
JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local
LABEL  ?=
SECONDS_PER_TARGET ?= 60

DIR     := $(BUILD)/$(PRESET)
FETCHED := $(filter $(MODEL),smollm2 gemma3)
# TSan of gcc 12 cannot map its shadow where the system spreads addresses widely.
RUN     := $(if $(filter tsan,$(PRESET)),$(shell setarch -R true 2>/dev/null && echo setarch -R))
export MODEL PROMPT
export PYTHONDONTWRITEBYTECODE = 1
# gcc's fake stack is not aligned for 512-bit stores, so stack use after return is not looked for.
export ASAN_OPTIONS ?= detect_leaks=1:detect_stack_use_after_return=0:strict_string_checks=1
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= halt_on_error=1

.PHONY: all run test bench bench-peers mutation fuzz format lint tidy install clean
.PHONY: setup setup-ci fetch program build ctest far

all: build

setup:
	@scripts/setup.sh
setup-ci:
	@scripts/setup.sh --ci

$(DIR)/build.ninja: | setup
	cmake --preset $(PRESET) -B "$(DIR)" -DSINTER_MODELS="$(abspath $(MODELS))" \
		-DCMAKE_INSTALL_PREFIX="$(PREFIX)"

program: $(DIR)/build.ninja | setup
	@ninja --quiet -C "$(DIR)" -j $(JOBS) sinter >&2
build: $(DIR)/build.ninja | setup
	@ninja -C "$(DIR)" -j $(JOBS)

fetch: | setup
	@scripts/fetch_model.sh smollm2 "$(MODELS)" >/dev/null
	@scripts/fetch_model.sh gemma3 "$(MODELS)" >/dev/null

run: program
ifneq ($(FETCHED),)
	@file=$$(scripts/fetch_model.sh "$(FETCHED)" "$(MODELS)") && \
		exec "$(DIR)/sinter" run "$$file" "$$PROMPT"
else
	@exec "$(DIR)/sinter" run "$$MODEL" "$$PROMPT"
endif

# All tests of one build; LABEL=quick leaves out real models, faults, mutation.
ctest:
	@cd "$(DIR)" && $(RUN) ctest --output-on-failure --timeout 1200 -j $(JOBS) \
		--no-tests=error $(if $(LABEL),-L '^$(LABEL)$$')
# The quick suite with the ref backend's memory out of reach outside of its own calls.
far:
	@SINTER_FAR=1 $(MAKE) --no-print-directory ctest LABEL=quick
test: build fetch
	@$(MAKE) --no-print-directory far
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory ctest

mutation: build
	@$(MAKE) --no-print-directory ctest LABEL=mutation

fuzz:
	@$(MAKE) --no-print-directory build PRESET=fuzz
	@scripts/fuzz.sh "$(BUILD)/fuzz" $(SECONDS_PER_TARGET)

bench: program fetch
	@for file in "$(MODELS)"/*.gguf; do "$(DIR)/sinter" bench -m "$$file" || exit; done
# LLAMA_BENCH=path of llama.cpp's llama-bench, built for this machine; RECORD=1 keeps the table
bench-peers: program fetch
	@test -x "$(LLAMA_BENCH)" || \
		{ echo "bench-peers: set LLAMA_BENCH to a llama-bench that can be run" >&2; exit 2; }
	@python3 bench/peers.py --sinter "$(DIR)/sinter" --llama-bench "$(LLAMA_BENCH)" \
		--models "$(MODELS)" --work "$(BUILD)/peers" $(if $(RECORD),--record)

# FORMAT="--dry-run -Werror" only looks
FORMAT ?= -i
format:
	@git ls-files '*.c' '*.h' | xargs clang-format --style=file $(FORMAT)
lint: | setup
	@python3 scripts/lint.py
tidy: $(DIR)/build.ninja
	@git ls-files 'src/*.c' 'tools/*.c' | grep -v -e _test.c -e _fuzz.c | \
		xargs -P $(JOBS) -n 4 clang-tidy --quiet -p "$(DIR)"

install: build
	cmake --install "$(DIR)" --prefix "$(PREFIX)"

clean:
	rm -rf $(foreach p,release debug asan tsan ci clang fuzz peers,"$(BUILD)/$(p)")
