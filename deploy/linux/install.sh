#!/bin/sh
# Installs Windrow from its tar.gz, or removes it again:
#
#   sh install.sh --from FOLDER-OR-URL [--prefix DIR] [--version VERSION]
#   sh install.sh --uninstall [--prefix DIR]
#
# FOLDER-OR-URL is where SHA256SUMS and the tar.gz are. Nothing is installed that SHA256SUMS does not know. The prefix is
# /usr/local for root, and ~/.local for everybody else. Settings and data are neither made nor removed.
set -eu

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

usage() {
  sed -n 's/^# \{0,1\}//; 3,9p' "$0"
}

from=''
version=''
uninstall=''
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
while [ $# -gt 0 ]; do
  case $1 in
    --from | --prefix | --version)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in --from) from=$2 ;; --prefix) prefix=$2 ;; --version) version=$2 ;; esac
      shift 2
      ;;
    --uninstall)
      uninstall=1
      shift
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) fail "what is $1? --help says what there is" ;;
  esac
done

documents=$prefix/share/doc/windrow
if [ -n "$uninstall" ]; then
  [ -e "$prefix/bin/windrow" ] || fail "there is no Windrow in $prefix"
  rm -f "$prefix/bin/windrow"
  rm -rf "$documents"
  echo "removed from $prefix; settings and data are as they were"
  exit 0
fi
[ -n "$from" ] || fail "--from FOLDER-OR-URL says where SHA256SUMS and the tar.gz are"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fetch() { # name
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --output "$work/$1" "${from%/}/$1"
      elif command -v wget >/dev/null; then
        wget -q -O "$work/$1" "${from%/}/$1"
      else
        fail "curl or wget is needed to fetch from a URL"
      fi
      ;;
    *) cp "$from/$1" "$work/$1" ;;
  esac || fail "$from has no $1"
}

fetch SHA256SUMS
system=linux-$(uname -m)
[ "$(uname -s)" = Linux ] || fail "there is no package for $(uname -s)"
known=$(awk -v start="windrow-$version" -v end="-$system.tar.gz" '
  index($2, start) == 1 && substr($2, length($2) - length(end) + 1) == end && !index($2, "/")' "$work/SHA256SUMS")
found=$(printf '%s\n' "$known" | sed 's/.*  //')
[ -n "$found" ] || fail "SHA256SUMS has no tar.gz ${version:+of version $version }for $system"
[ "$(printf '%s\n' "$found" | wc -l)" -eq 1 ] || fail "--version says which one is wanted:
$found"

fetch "$found"
printf '%s\n' "$known" | (cd "$work" && sha256sum -c - >/dev/null 2>&1) ||
  fail "$found is not what SHA256SUMS says: nothing was installed"
tar -xzf "$work/$found" -C "$work"
unpacked=$work/${found%.tar.gz}
# A program that can't run here would only show it at its first start.
"$unpacked/bin/windrow" --version >"$work/version" 2>&1 || fail "it does not run on this system: $(cat "$work/version")"

mkdir -p "$prefix/bin" "$prefix/share/doc"
rm -rf "$documents"
cp -R "$unpacked/share/doc/windrow" "$documents"
# In one step: a gateway that runs keeps its own.
cp "$unpacked/bin/windrow" "$prefix/bin/windrow.new"
mv "$prefix/bin/windrow.new" "$prefix/bin/windrow"
echo "$(cat "$work/version") is installed in $prefix/bin"
case :$PATH: in
  *":$prefix/bin:"*) ;;
  *) echo "$prefix/bin is not in PATH" ;;
esac
