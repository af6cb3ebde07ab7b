# Sourced by the scripts beside it: `refresh [extra]` makes .venv, or installs the checkout into it again when a source
# is newer than the last time. Two callers at once take turns. Prints only when something fails.

root=$(CDPATH='' cd -- "${0%/*}/.." && pwd -P) || exit 70
venv=$root/.venv

# The interpreter itself, not a shim that picks one: a venv made from a shim breaks when the shim's choice changes.
interpreter() {
    for name in "${PYTHON:-python3}" python3 python3.11 python3.12 python3.13 python3.14; do
        "$name" -c 'import os, sys
if sys.version_info < (3, 11): raise SystemExit(1)
print(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))' 2>/dev/null && return 0
    done
    echo "expected Python 3.11 or newer on PATH, found none: install it, or name one in PYTHON" >&2
    return 1
}

stale() {
    [ ! -e "$1" ] || [ -n "$(cd "$root" && find ral setup.py pyproject.toml scripts \
        -name __pycache__ -prune -o \( -name '*.py' -o -name '*.pyi' -o -name '*.[ch]' -o -name '*.ral' -o -name '*.toml' \
        -o -name launcher -o -name bundle.py \) -newer "$1" -print | head -n 1)" ] || [ "$(sources)" != "$(cat "$1")" ]
}

# The names of the sources: what a deleted or renamed file changes and no time stamp shows.
sources() {
    (cd "$root" && find ral -name __pycache__ -prune -o \( -name '*.py' -o -name '*.[ch]' -o -name '*.ral' \) -print | sort | cksum)
}

quietly() {
    "$@" >"$venv/.log" 2>&1 && return 0
    echo "failed: $*" >&2
    cat "$venv/.log" >&2
    return 1
}

install() {
    [ -x "$venv/bin/python" ] || {
        python=$(interpreter) && "$python" -m venv "$venv" >&2 && quietly "$venv/bin/pip" install -q 'setuptools>=77'
    } || return 1
    mark=$(sources)
    : >"$1.new"
    rm -rf "$root/build"
    quietly "$venv/bin/pip" install -q --no-build-isolation "$root$2" || return 1
    # The stamp keeps the time at which the install began: a source saved meanwhile is newer than it.
    touch -r "$1.new" "$venv/.began" && printf '%s\n' "$mark" >"$1" && touch -r "$venv/.began" "$1" && rm -f "$1.new"
}

# refresh STAMP EXTRA: the stamp's name tells installs with and without the tools apart.
refresh() {
    stamp=$venv/.$1
    stale "$stamp" || return 0
    mkdir -p "$venv" && exec 9>"$venv/.lock" || return 1
    if command -v flock >/dev/null; then flock 9; fi
    if stale "$stamp"; then install "$stamp" "$2" || return 1; fi
    exec 9>&-
}
