#!/usr/bin/env bash
# Installs what is missing, and only that. Repeatable.
#   setup.sh run    what building and serving need
#   setup.sh test   that, and what the tests need
set -euo pipefail
cd "$(dirname "$0")/../../.."

oldest_rust=95     # 1.95
oldest_node_run=18
oldest_node_test=20
apt_is_fresh=

say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# install WHAT PACKAGE…: Debian's packages, if we may install any.
install() {
    local what=$1
    shift
    has apt-get || die "$what is missing. Install it with your package manager (Debian calls it: $*), then run this again."
    if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
        die "$what is missing. Install it with \`sudo apt-get install $*\`, then run this again."
    fi
    say "$what is missing: installing $*"
    local log
    log=$(mktemp)
    if [ -z "$apt_is_fresh" ]; then
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update >"$log" 2>&1 ||
            die "apt-get update failed: $(tail -n 1 "$log") (all of it: $log). Check the network, then run this again."
        apt_is_fresh=yes
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "$@" >"$log" 2>&1 ||
        die "apt-get install $* failed: $(tail -n 1 "$log") (all of it: $log). Install it by hand, then run this again."
    rm -f "$log"
}

need_c_compiler() {
    has cc || install "A C compiler" build-essential
}

need_rust() {
    if ! has cargo; then
        has curl || install "curl" curl ca-certificates
        say "Rust is missing: running its installer, rustup"
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --quiet --profile minimal --component clippy --component rustfmt ||
            die "rustup's installer failed. Install Rust from https://rustup.rs, then run this again."
        PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    fi
    local minor
    minor=$(rustc --version | sed -n 's/^rustc 1\.\([0-9]*\).*/\1/p')
    if [ "${minor:-0}" -lt "$oldest_rust" ]; then
        has rustup || die "Rust 1.$oldest_rust or newer is needed, and this is $(rustc --version). Install it from https://rustup.rs, then run this again."
        say "Rust is older than 1.$oldest_rust: updating it"
        rustup update --no-self-update stable || die "\`rustup update stable\` failed. Run it by hand, then run this again."
        minor=$(rustc --version | sed -n 's/^rustc 1\.\([0-9]*\).*/\1/p')
        [ "${minor:-0}" -ge "$oldest_rust" ] || die "Rust 1.$oldest_rust or newer is needed. Make it the default with \`rustup default stable\`, then run this again."
    fi
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ]; then
        has rustup || die "The target wasm32-unknown-unknown is missing. Install Rust from https://rustup.rs, then run this again."
        say "adding Rust's target for browsers"
        rustup target add wasm32-unknown-unknown || die "\`rustup target add wasm32-unknown-unknown\` failed. Run it by hand, then run this again."
    fi
}

# Programs that are copied to hosts are linked statically. Without this they still run
# where the C library is as new as here, so that is no reason to give up.
want_static() {
    local target
    target=$(uname -m)-unknown-linux-musl
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
        say "adding Rust's target $target, for programs that are copied to hosts"
        if ! has rustup || ! rustup target add "$target"; then
            say "the target $target cannot be had: hosts get the ordinary programs and need a C library as new as this machine's"
            return
        fi
    fi
    # A part of the meter is C. Debian's package brings headers that fit the target.
    has musl-gcc || has "$(uname -m)-linux-musl-gcc" ||
        (install "The C compiler for static programs" musl-tools) ||
        say "without it the meter for hosts may not build statically"
}

need_rust_components() {
    local missing=
    cargo fmt --version >/dev/null 2>&1 || missing="rustfmt"
    cargo clippy --version >/dev/null 2>&1 || missing="$missing clippy"
    [ -z "$missing" ] && return
    # shellcheck disable=SC2086 # two words, two components
    rustup component add $missing || die "\`rustup component add $missing\` failed. Run it by hand, then run this again."
}

# need_node OLDEST
need_node() {
    has node || install "Node" nodejs
    has npm || install "npm" npm
    local major
    major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
    [ "$major" -ge "$1" ] || die "Node $1 or newer is needed, and this is $(node --version). Install a newer one (https://nodejs.org), then run this again."
}

# need_npm FOLDER: what the folder's lock file names, when that has changed.
need_npm() {
    local installed=$1/node_modules/.installed-lock.json log
    cmp -s "$1/package-lock.json" "$installed" && return
    say "installing what $1/package-lock.json names"
    log=$(mktemp)
    (cd "$1" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --ignore-scripts --no-audit --no-fund) >"$log" 2>&1 ||
        die "\`npm ci\` in $1/ failed: $(grep -m 1 -i error "$log" || tail -n 1 "$log") (all of it: $log). Check the network, then run this again."
    rm -f "$log"
    cp "$1/package-lock.json" "$installed"
}

need_postgres() {
    [ -n "${DATABASE_URL:-}" ] && [ "$1" = run ] && return
    [ -n "${TOKDYNO_PG_BIN:-}" ] && return
    local program
    for program in /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb; do
        [ -x "$program" ] && return
    done
    has initdb && return
    install "PostgreSQL" postgresql
}

need_chromium() {
    [ -n "${TOKDYNO_CHROMIUM:-}" ] && return
    has chromium || has chromium-browser || has google-chrome || install "Chromium" chromium fonts-dejavu-core
}

need_sshd() {
    [ -x /usr/sbin/sshd ] || has sshd || install "The SSH server" openssh-server
}

# Login shells that quote otherwise than POSIX: commands must pass through them too.
need_shells() {
    has tcsh || install "The shell tcsh" tcsh
    has fish || install "The shell fish" fish
}

case "${1:-}" in
run)
    need_c_compiler
    need_rust
    want_static
    need_node "$oldest_node_run"
    need_npm app
    need_postgres run
    ;;
test)
    need_c_compiler
    need_rust
    need_rust_components
    want_static
    need_node "$oldest_node_test"
    need_npm app
    need_npm end2end
    need_postgres test
    need_chromium
    need_sshd
    need_shells
    ;;
*)
    die "Say what for: setup.sh run, or setup.sh test."
    ;;
esac
