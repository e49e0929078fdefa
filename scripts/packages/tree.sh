# shellcheck shell=bash
# What the packages for Linux have in common. Sourced by their scripts, which scripts/package runs.
set -euo pipefail

# Of the program, which is run here.
# shellcheck disable=SC2034
machine=$(uname -m)
"$WINDROW_BINARY" --version >/dev/null || {
  echo "package: $WINDROW_BINARY does not run here: make its package on a machine of its kind" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The newest glibc that the program asks for: what it runs on has this one or a newer one.
needed_glibc() { objdump -T "$WINDROW_BINARY" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1 | sed 's/GLIBC_//'; }

# The libraries that the program is linked to.
needed_libraries() { objdump -p "$WINDROW_BINARY" | awk '$1 == "NEEDED" && $2 !~ /^ld-linux/ { print $2 }' | sort; }

install_program() { # path
  install -D -m 0755 "$WINDROW_BINARY" "$1"
  # A fifth of it is names of functions.
  strip "$1"
}

install_documents() { # folder; the notices of third parties and the bill of materials, which scripts/package makes first
  install -D -m 0644 -t "$1" LICENSE README.md CHANGELOG.md "$DIST/THIRD-PARTY-NOTICES.txt" "$DIST/windrow-$VERSION.cdx.json"
}

# The tree of the packages with a service: deb and rpm.
install_service_tree() { # root
  install_program "$1/usr/bin/windrow"
  install_documents "$1/usr/share/doc/windrow"
  install -D -m 0644 deploy/linux/windrow.service "$1/usr/lib/systemd/system/windrow.service"
  # Secrets may stand in every file of it. Its group is windrow's, which there is none of here.
  install -d -m 0750 "$1/etc/windrow"
  install -m 0640 deploy/linux/windrow.toml "$1/etc/windrow/windrow.toml"
  mkdir -p "$1/usr/share/bash-completion/completions" "$1/usr/share/fish/vendor_completions.d"
  "$WINDROW_BINARY" completions bash >"$1/usr/share/bash-completion/completions/windrow"
  "$WINDROW_BINARY" completions fish >"$1/usr/share/fish/vendor_completions.d/windrow.fish"
}

# Every file gets the commit's time.
set_times() { find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +; }
