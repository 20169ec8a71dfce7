#!/bin/sh
# Makes this folder ready for `npm start` and `npm test`: dependencies by the lock file, and a redis-server where none is.
# One line for each step, and safe to run again at any time; when all is in place it only looks.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."

# npm hands its own settings to what it runs, this script included; they are not for the npm in here.
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

say() { printf '%s\n' "$*"; }

# Runs a command without its output, which is shown only if it fails.
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
# Only to bootstrap: the dependencies bring the Node that Inlet runs on, and npm puts it first for scripts.
command -v node >/dev/null && command -v npm >/dev/null ||
  fail 'Inlet needs Node.js 20 or later and npm. Install them from https://nodejs.org, then run this again.'
bootstrap_major=$(node -p 'process.versions.node.split(".")[0]')
[ "$bootstrap_major" -ge 20 ] ||
  fail "Inlet needs Node.js 20 or later; here is $(node --version). Install a newer one from https://nodejs.org."

# --- dependencies ---------------------------------------------------------------------------------------------------
# The stamp is written last and `npm ci` begins by removing node_modules with it, so a half-finished one is never taken
# for whole. The Node that counts is asked as well: its package is completed by an install script.
stamp=node_modules/.inlet-setup
wanted=$(cat package-lock.json .npmrc | cksum)
runtime_works() { node_modules/.bin/node -e 'process.exit(parseInt(process.versions.node) < 24 ? 1 : 0)' 2>/dev/null; }

if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || ! runtime_works; then
  rm -f "$stamp"
  say 'Installing the dependencies of package-lock.json (npm ci) ...'
  quietly npm ci --include=dev --include=optional --ignore-scripts=false --loglevel=error ||
    fail 'npm ci failed (see above).'
  runtime_works || fail 'The Node.js 24 of node_modules/.bin/node does not run on this machine.'
  printf '%s\n' "$wanted" >"$stamp"
fi

# --- console --------------------------------------------------------------------------------------------------------
# Rests by a stamp of its own where nothing has changed. The gateway runs without it.
quietly node_modules/.bin/node config/console/build.ts ||
  say 'The console could not be built (see above); everything else works. Try again: npm run build:console'

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
  fail 'Inlet needs a redis-server on the PATH (7.0 or later), or REDIS_URL: install one with your package manager.'
fi

as_root=
case $install in
brew*) ;;
*)
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
      fail 'Inlet needs a redis-server (7.0 or later), or REDIS_URL. Install one with:' "  sudo $install"
    as_root='sudo -n'
  fi
  ;;
esac

# Debian's package starts a service of its own, which Inlet does not use. policy-rc.d is the documented way to forbid that;
# it is put back as it was, and if this script is killed, by its next run.
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
    # With package lists at hand the slow part, fetching them, is saved.
    apt_install || { $as_root apt-get update && apt_install; } || return 1
    restore_policy
    # Not at the next boot either: that too would be this script's doing.
    if command -v systemctl; then $as_root systemctl disable redis-server.service || true; fi
    ;;
  *)
    $as_root $install
    ;;
  esac
}

say "Installing a redis-server ($install) ..."
quietly install_redis || fail 'Installing redis-server failed (see above). To do it by hand:' "  $install"
has_redis || fail 'redis-server was installed but is not on the PATH.'
say 'Ready: npm start'
