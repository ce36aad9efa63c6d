#!/usr/bin/env bash
# Makes sure that what Ebb is tried with is on this machine: PostgreSQL's server programs, as the bot and the tests start
# private servers of their own. `deps.sh tests` adds PgBouncer and Chromium, which only tests use, and `deps.sh screenshots`
# Chromium and a Chinese font. Does nothing when all is there. With apt-get the packages are all that stays: settings that an
# installation needs are removed after it. CHROME is the path of a Chromium or Chrome at another place. DEPS_ROOT is another
# root directory to look and write under, for tests.
set -euo pipefail
root=${DEPS_ROOT:-}

missing_postgres() {
  command -v initdb >/dev/null && return 1
  local dir
  for dir in "$root"/usr/lib/postgresql/*/bin "$root"/opt/homebrew/opt/postgresql*/bin "$root"/usr/local/opt/postgresql*/bin; do
    [ -x "$dir/initdb" ] && return 1
  done
  return 0
}

missing_pgbouncer() {
  command -v pgbouncer >/dev/null && return 1
  local path
  for path in "$root"/usr/sbin "$root"/opt/homebrew/bin "$root"/usr/local/bin; do
    [ -x "$path/pgbouncer" ] && return 1
  done
  return 0
}

# is_browser PROGRAM: Ubuntu's chromium-browser without its snap is a stub that fails. A version needs no display.
is_browser() {
  command -v "$1" >/dev/null && "$1" --version </dev/null >/dev/null 2>&1
}

missing_chromium() {
  local name
  if [ -n "${CHROME:-}" ]; then
    ! is_browser "$CHROME"
    return
  fi
  for name in chromium chromium-browser google-chrome google-chrome-stable "$root/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    is_browser "$name" && return 1
  done
  return 0
}

# macOS has Chinese fonts.
missing_font() {
  command -v fc-list >/dev/null && [ -z "$(fc-list :lang=zh family)" ]
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

files=() # written for the time of an installation
dirs=()  # made for them

# add_setting FILE MODE TEXT writes a file that remove_settings deletes; one that exists stays as it is.
add_setting() {
  local file=$root$1 dir
  [ ! -e "$file" ] || return 0
  dir=$(dirname "$file")
  if [ ! -d "$dir" ]; then
    dirs+=("$dir")
    as_root mkdir -p "$dir"
  fi
  files+=("$file")
  printf '%s\n' "$3" | as_root tee "$file" >/dev/null
  as_root chmod "$2" "$file"
}

remove_settings() {
  if [ ${#files[@]} -gt 0 ]; then as_root rm -f "${files[@]}"; fi
  if [ ${#dirs[@]} -gt 0 ]; then as_root rmdir -p --ignore-fail-on-non-empty "${dirs[@]}"; fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" && echo "Installed with apt-get: $*"
}

# Only the programs are wanted: packages must not make or start servers of the machine's own, now or at its next start.
# Chromium is installed apart, as Ubuntu's archive lacks it, and apt-get installs all packages of a call or none.
install_debian() {
  trap remove_settings EXIT
  add_setting /etc/postgresql-common/createcluster.d/programs-only.conf 644 'create_main_cluster = false'
  add_setting /usr/sbin/policy-rc.d 755 $'#!/bin/sh\nexit 101'
  as_root apt-get update -q
  local others=() name
  for name; do
    if [ "$name" != chromium ]; then others+=("$name"); fi
  done
  if [ ${#others[@]} -gt 0 ]; then apt_install "${others[@]}"; fi
  case " $* " in *' chromium '*) apt_install chromium || true ;; esac
  case " $* " in *' pgbouncer '*)
    if command -v systemctl >/dev/null; then
      echo "The service of PgBouncer's package is switched off: systemctl enable pgbouncer switches it on."
      as_root systemctl disable pgbouncer.service || true
    fi
  esac
}

# packages PostgreSQL Chromium lists the packages to install, by their names here.
packages() {
  if missing_postgres; then echo "$1"; fi
  if [ "$use" = tests ] && missing_pgbouncer; then echo pgbouncer; fi
  case $use in tests | screenshots) if missing_chromium; then echo "$2"; fi ;; esac
  if [ "$use" = screenshots ] && missing_font; then echo fonts-noto-cjk; fi
}

use=${1:-}
if [ -z "$(packages any any)" ]; then
  exit 0
elif command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }; then
  wanted=$(packages postgresql chromium)
  echo "Installing with apt-get what is missing:" $wanted
  install_debian $wanted
elif command -v brew >/dev/null; then
  wanted=$(packages postgresql@17 google-chrome)
  echo "Installing with brew what is missing:" $wanted
  brew install $wanted
fi

if missing_postgres; then
  echo 'PostgreSQL is missing and cannot be installed from here. Install its server package (15 or later: postgresql on' >&2
  echo 'Debian and Ubuntu, postgresql-server on Fedora, postgresql@17 with Homebrew), or put initdb on PATH.' >&2
  exit 1
fi
if [ "$use" = tests ] && missing_pgbouncer; then
  echo 'PgBouncer is missing and cannot be installed from here: the tests need its package, pgbouncer.' >&2
  exit 1
fi
case $use in tests | screenshots)
  if missing_chromium; then
    echo 'Chromium is missing and cannot be installed from here: the tests of the console need it, or Chrome. The archive of' >&2
    echo 'Ubuntu has it as a snap only. Install Google Chrome, or Chromium (snap install chromium on Ubuntu), or set CHROME to' >&2
    echo 'the path of a Chrome or Chromium that answers --version.' >&2
    exit 1
  fi
esac
