#!/bin/sh
# Prepares this folder for `npm start` and `npm test`: installs the locked dependencies, and a redis-server if there is none.
# Prints one line per step. Safe to run again at any time; a complete setup is only checked.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."

# Environment variables with npm's settings may be inherited from an outer npm. These override them for the npm calls below.
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

say() { printf '%s\n' "$*"; }

# Runs a command and shows its output only if it fails.
quietly() {
  quiet_log=$(mktemp)
  if "$@" >"$quiet_log" 2>&1 </dev/null; then
    rm -f "$quiet_log"
  else
    quiet_status=$?
    cat "$quiet_log" >&2
    rm -f "$quiet_log"
    return "$quiet_status"
  fi
}

# --- Node -----------------------------------------------------------------------------------------------------------
# This Node.js only bootstraps. The dependencies include the Node.js that Inlet runs on, and npm puts it first on the PATH of scripts.
command -v node >/dev/null && command -v npm >/dev/null ||
  fail 'Inlet needs Node.js 20 or later and npm. Install them from https://nodejs.org, then run this again.'
bootstrap_major=$(node -p 'process.versions.node.split(".")[0]')
[ "$bootstrap_major" -ge 20 ] ||
  fail "Inlet needs Node.js 20 or later, but found $(node --version). Install a newer version from https://nodejs.org, then run this again."

# --- dependencies ---------------------------------------------------------------------------------------------------
# The stamp is written last, and `npm ci` starts by removing node_modules with it. An interrupted install therefore never looks
# complete. The bundled Node.js is checked too, because an install script completes its package.
stamp=node_modules/.inlet-setup
wanted=$(cat package-lock.json .npmrc | cksum)
runtime_works() { node_modules/.bin/node -e 'process.exit(parseInt(process.versions.node) < 24 ? 1 : 0)' 2>/dev/null; }

if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || ! runtime_works; then
  rm -f "$stamp"
  say 'Installing the dependencies of package-lock.json (npm ci) ...'
  quietly npm ci --include=dev --include=optional --ignore-scripts=false --loglevel=error ||
    fail 'npm ci failed (see above).'
  # The install script of the package `node` leaves C++ headers and a second link to the program behind. No dependency is compiled.
  rm -rf node_modules/node/node_modules
  runtime_works || fail 'The Node.js 24 of node_modules/.bin/node does not run on this machine.'
  printf '%s\n' "$wanted" >"$stamp"
fi

# --- console --------------------------------------------------------------------------------------------------------
# The build script skips the build if no source has changed. The gateway also runs without the console.
quietly node_modules/.bin/node config/console/build.ts ||
  say 'The console could not be built (see above). Everything else works. To try again: npm run build:console'

# --- Redis ----------------------------------------------------------------------------------------------------------
has_redis() { command -v redis-server >/dev/null || command -v valkey-server >/dev/null; }
if has_redis || [ -n "${REDIS_URL:-}" ]; then
  say 'Ready: npm start'
  exit 0
fi

if command -v apt-get >/dev/null; then
  install='apt-get install -y --no-install-recommends redis-server'
elif command -v dnf >/dev/null; then
  install='dnf install -y redis'
elif command -v apk >/dev/null; then
  install='apk add redis'
elif command -v brew >/dev/null; then
  install='brew install redis'
else
  fail 'Inlet needs redis-server 7.0 or later on the PATH, or REDIS_URL. Install redis-server with your package manager.'
fi

as_root=
case $install in
brew*) ;;
*)
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
      fail 'Inlet needs redis-server 7.0 or later, or REDIS_URL. To install it, run:' "  sudo $install"
    as_root='sudo -n'
  fi
  ;;
esac

# Debian's package starts a Redis service, which Inlet does not use. policy-rc.d is the documented way to prevent that.
# The script restores the original file at exit, or on its next run if it was killed.
policy=/usr/sbin/policy-rc.d
policy_mark='# by config/setup.sh of Inlet, for a moment'

restore_policy() {
  if grep -qF "$policy_mark" "$policy" 2>/dev/null; then $as_root rm -f "$policy"; fi
  if [ -e "$policy.inlet" ]; then $as_root mv -f "$policy.inlet" "$policy"; fi
}

forbid_services() {
  restore_policy
  trap restore_policy EXIT
  trap 'exit 1' HUP INT TERM
  if [ -e "$policy" ]; then $as_root mv "$policy" "$policy.inlet" || return 1; fi
  printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" | $as_root tee "$policy" >/dev/null && $as_root chmod 755 "$policy"
}

apt_install() {
  $as_root env DEBIAN_FRONTEND=noninteractive $install -o DPkg::Lock::Timeout=60
}

install_redis() {
  case $install in
  apt-get*)
    forbid_services || return 1
    # Existing package lists save the slow `apt-get update`.
    apt_install || { $as_root apt-get update && apt_install; } || return 1
    restore_policy
    # The service must not start at the next boot either.
    if command -v systemctl; then $as_root systemctl disable redis-server.service || true; fi
    ;;
  *)
    $as_root $install
    ;;
  esac
}

say "Installing redis-server ($install) ..."
quietly install_redis || fail 'Installing redis-server failed (see above). To install it yourself, run:' "  $install"
has_redis || fail 'redis-server was installed but is not on the PATH.'
say 'Ready: npm start'
