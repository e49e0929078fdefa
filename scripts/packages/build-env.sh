# shellcheck shell=bash
# Sourced by what compiles for other machines than this one, and for an older glibc than this one's.
set -euo pipefail

# In any folder the same bytes.
. scripts/reproducible

# What wheels call it: any Linux since 2018.
# shellcheck disable=SC2034
oldest_glibc=2.28
# Pages have up to 64 KiB on arm64, which jemalloc has to know beforehand.
export AARCH64_UNKNOWN_LINUX_GNU_JEMALLOC_SYS_WITH_LG_PAGE=16

# Puts maturin, cargo-zigbuild and zig on the PATH.
enter_build_env() {
  local env=$PWD/target/packages/env
  if ! cmp -s scripts/packages/requirements.txt "$env/.installed"; then
    python3 -m venv "$env"
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check -r scripts/packages/requirements.txt >&2
    cp scripts/packages/requirements.txt "$env/.installed"
  fi
  PATH=$env/bin:$PATH
}

# rustc's name of a machine's Linux; installs the standard library for it where rustup can.
rust_target() { # x86_64 or aarch64
  local target=$1-unknown-linux-gnu
  if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then rustup target add "$target" >&2; fi
  echo "$target"
}
