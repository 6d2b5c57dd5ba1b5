#!/bin/sh
# Runs every fuzz target of a build for some seconds; fails at the first crash, leak or hang.
#
#   scripts/fuzz.sh BUILD_FOLDER [SECONDS [TARGET ...]]     made with: cmake --preset fuzz
#
# What was found is kept in BUILD_FOLDER/fuzz: NAME.found (new inputs) and crash-* (to reproduce
# with BUILD_FOLDER/fuzz/NAME FILE). The committed corpus is only read.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?usage: scripts/fuzz.sh BUILD_FOLDER [SECONDS [TARGET ...]]}
seconds=${2:-60}
shift
[ $# = 0 ] || shift
if [ $# = 0 ]; then # all that were built
    # shellcheck disable=SC2046
    set -- $(cd "$folder/fuzz" 2>/dev/null &&
        find . -maxdepth 1 -type f -perm -u+x | sed 's|^\./||' | sort)
fi
if [ $# = 0 ]; then
    echo "fuzz: no target in $folder/fuzz" >&2
    exit 1
fi
done=0
for name in "$@"; do
    corpus="$here/tests/fuzz/corpus/$name"
    log="$folder/fuzz/$name.log"
    if [ ! -d "$corpus" ]; then
        echo "fuzz $name: no corpus in tests/fuzz/corpus/$name; add at least one file" >&2
        exit 1
    fi
    mkdir -p "$folder/fuzz/$name.found"
    if ! "$folder/fuzz/$name" -max_total_time="$seconds" -max_len=65536 -timeout=20 \
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$folder/fuzz/" \
        "$folder/fuzz/$name.found" "$corpus" >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        echo "fuzz $name: FAILED; the input is named above" >&2
        exit 1
    fi
    echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs in $seconds s"
    done=$((done + 1))
done
echo "fuzz: $done/$# targets"
