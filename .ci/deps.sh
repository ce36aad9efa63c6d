#!/usr/bin/env bash
# Makes sure that what Ebb is tried with is on this machine: PostgreSQL's server programs, as the bot and the tests start
# private servers of their own, and behind `deps.sh tests` PgBouncer, which only tests go through. Does nothing when all is
# there.
set -euo pipefail

missing_postgres() {
  command -v initdb >/dev/null && return 1
  local dir
  for dir in /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
    [ -x "$dir/initdb" ] && return 1
  done
  return 0
}

missing_pgbouncer() {
  command -v pgbouncer >/dev/null && return 1
  local path
  for path in /usr/sbin /opt/homebrew/bin /usr/local/bin; do
    [ -x "$path/pgbouncer" ] && return 1
  done
  return 0
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Only the programs are wanted: packages must not make or start servers of the machine's own, now or at its next start.
install_debian() {
  as_root mkdir -p /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.d/programs-only.conf >/dev/null
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null
    as_root chmod 755 /usr/sbin/policy-rc.d
  fi
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"
  case " $* " in *' pgbouncer '*)
    if command -v systemctl >/dev/null; then as_root systemctl disable pgbouncer.service || true; fi
  esac
}

packages() {
  if missing_postgres; then echo "$1"; fi
  if [ "$tests" = tests ] && missing_pgbouncer; then echo pgbouncer; fi
}

tests=${1:-}
if [ -z "$(packages any)" ]; then
  exit 0
elif command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }; then
  wanted=$(packages postgresql)
  echo "Installing with apt-get what is missing:" $wanted
  install_debian $wanted
elif command -v brew >/dev/null; then
  wanted=$(packages postgresql@17)
  echo "Installing with brew what is missing:" $wanted
  brew install $wanted
fi

if missing_postgres; then
  echo 'PostgreSQL is missing and cannot be installed from here. Install its server package (15 or later: postgresql on' >&2
  echo 'Debian and Ubuntu, postgresql-server on Fedora, postgresql@17 with Homebrew), or put initdb on PATH.' >&2
  exit 1
fi
if [ "$tests" = tests ] && missing_pgbouncer; then
  echo 'PgBouncer is missing and cannot be installed from here: the tests need its package, pgbouncer.' >&2
  exit 1
fi
