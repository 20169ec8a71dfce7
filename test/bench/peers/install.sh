#!/bin/sh
# Installs the peers of `npm run bench:peers`. Go, redigo and nginx with its Lua module are Debian packages. Fastify and Node-RED are
# npm packages in node_modules/.cache. Prints a message for each peer that is not available, and skips it.
# Debian starts nginx when it installs it. The bench does not need that: `systemctl disable --now nginx`.
#
# usage: test/bench/peers/install.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../../.." && pwd)/node_modules/.cache/bench-peers
mkdir -p "$cache"

skip() { echo "skipped: $1"; }

debian() {
  name=$1
  shift
  if dpkg -s "$@" >/dev/null 2>&1; then return 0; fi
  if ! command -v apt-get >/dev/null; then skip "$name, which comes from Debian's packages: $*"; return 1; fi
  if [ "$(id -u)" != 0 ]; then skip "$name: as root, apt-get install $*"; return 1; fi
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null && return 0
  skip "$name: apt-get could not install $*"
  return 1
}

if debian Go golang-go golang-github-gomodule-redigo-dev; then
  # Debian installs the sources of its Go packages there.
  GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE="$cache/go-build" go build -o "$cache/receiver" "$here/go/main.go" &&
    go version || skip "Go: it could not be built"
fi

debian "nginx + Lua" nginx libnginx-mod-http-lua lua-nginx-redis lua-cjson && nginx -v

echo '{ "private": true }' >"$cache/package.json"
for package in fastify@5.12.8 node-red@5.0.7; do
  npm install --prefix "$cache" --save-exact --ignore-scripts --no-audit --no-fund --loglevel error "$package" >/dev/null &&
    echo "$package" || skip "$package: npm could not install it"
done
