#!/usr/bin/env bash
# Makes sure that PostgreSQL's server programs are on this machine, as `make demo` and `make test` need them: the bot and
# the tests start private servers of their own. Does nothing when they are there.
set -euo pipefail

have_postgres() {
  command -v initdb >/dev/null && return
  local dir
  for dir in /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
    [ -x "$dir/initdb" ] && return
  done
  return 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if have_postgres; then
  exit 0
elif command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }; then
  echo 'PostgreSQL is missing: installing it with apt-get.'
  # Only the programs are wanted: this keeps the package from making and starting a server of the machine's own.
  as_root mkdir -p /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.d/programs-only.conf >/dev/null
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends postgresql
elif command -v brew >/dev/null; then
  echo 'PostgreSQL is missing: installing it with brew.'
  brew install postgresql@17
fi

if ! have_postgres; then
  echo 'PostgreSQL is missing and cannot be installed from here. Install its server package (15 or later: postgresql on' >&2
  echo 'Debian and Ubuntu, postgresql-server on Fedora, postgresql@17 with Homebrew), or put initdb on PATH.' >&2
  exit 1
fi
