#!/bin/sh
# Installs what is missing to build and test sinter on Debian: nothing, if all is there.
#
#   scripts/setup.sh        to build and run
#   scripts/setup.sh --ci   also clang, its tools and C++ (second compiler, fuzzing, format)
set -eu

packages="cmake ninja-build gcc libc6-dev make pkg-config libpcre2-dev libutf8proc-dev
 libjansson-dev libcmocka-dev libedit-dev python3 python3-pip python3-venv unzip"
tools="cmake ninja gcc pkg-config python3 unzip"
libraries="libpcre2-8 libutf8proc jansson cmocka libedit"
if [ "${1:-}" = --ci ]; then
    packages="$packages g++ clang clang-format clang-tidy libclang-rt-dev"
    tools="$tools g++ clang clang-format clang-tidy"
fi

# Is everything there? Quick, and right on systems that are not Debian too.
complete() {
    for tool in $tools; do
        command -v "$tool" >/dev/null || return 1
    done
    # shellcheck disable=SC2086
    pkg-config --exists $libraries || return 1
    if [ "${1:-}" = --ci ]; then
        [ -e "$(clang -print-file-name=libclang_rt.fuzzer-x86_64.a)" ] ||
            [ "$(uname -m)" != x86_64 ] || return 1
    fi
}

if complete "$@"; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "setup: there is no apt-get here; install by hand: tools $tools, libraries $libraries" >&2
    exit 1
fi
missing=
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $package"
done
as_root=
if [ "$(id -u)" != 0 ]; then
    as_root=sudo
    if ! command -v sudo >/dev/null; then
        echo "setup: not root and no sudo; as root run: apt-get install$missing" >&2
        exit 1
    fi
fi
echo "setup: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q >&2
# shellcheck disable=SC2086
$as_root apt-get install -q -y --no-install-recommends $missing >&2
if ! complete "$@"; then
    echo "setup: something is still missing of: tools $tools, libraries $libraries" >&2
    exit 1
fi
