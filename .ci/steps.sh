# What .ci/run and .ci/nightly share: a copy of the tree, steps, lanes, and the report at the end.
#
# Each step is timed and quiet. When a step fails, the other steps still run. At the end the logs of failed steps
# come first and a short list of failed tests last, since a record of a long output may keep only its end.
# shellcheck shell=bash
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
work=$(mktemp -d "${TMPDIR:-/tmp}/cerata-ci.XXXXXX")
tree=$work/tree
lanes=()
export LOG_LINES_MAX=120 LIST_LINES_MAX=60

clean_up() {
    local lane
    for lane in "${lanes[@]}"; do kill -- "-$lane" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A process group for each lane, so that stopping this script stops all that a lane started.
set -m
exec </dev/null
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
export CI=true
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
export PYRIGHT_PYTHON_IGNORE_WARNINGS=1
export NO_COLOR=1
mkdir -p "$tree" "$work/logs" "$work/bin"
: >"$work/failed"

# lane FUNCTION: run its steps in the background; finish waits for all lanes.
lane() {
    (set +m; "$1") &
    lanes+=("$!")
}

finish_lanes() {
    local lane
    for lane in "${lanes[@]}"; do wait "$lane" || echo "a lane ended early" >>"$work/failed"; done
    lanes=()
}

# step NAME FUNCTION: run it in a shell of its own, where any failing command ends it.
step() {
    local name=$1 log=$work/logs/$1.log start=$EPOCHREALTIME status=0 seconds
    (set -euo pipefail; cd "$tree"; "$2") >"$log" 2>&1 &
    wait "$!" || status=$?
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    if ((status == 0)); then
        printf '%-28s ok     %7s s   %s\n' "$name" "$seconds" "$(tail -n 1 "$log" | cut -c 1-100)"
    else
        printf '%-28s FAILED %7s s   exit code %d\n' "$name" "$seconds" "$status"
        printf '%s\n' "$name" >>"$work/failed"
    fi
}

# The logs of failed steps, then the time, then the names of failed tests; the exit code.
report() {
    local name
    while read -r name; do
        [[ -f $work/logs/$name.log ]] || continue
        printf '\n--- %s, the last %d lines\n' "$name" "$LOG_LINES_MAX"
        tail -n "$LOG_LINES_MAX" "$work/logs/$name.log" | cut -c 1-300 | sed 's/^/    /'
    done <"$work/failed"
    printf 'total %d s\n' "$SECONDS"
    if [[ ! -s $work/failed ]]; then
        echo "all checks passed"
        return 0
    fi
    while read -r name; do
        printf 'FAILED: %s\n' "$name"
        [[ -f $work/logs/$name.log ]] || continue
        grep -E '^(FAILED|ERROR) |: error: ' "$work/logs/$name.log" | cut -c 1-160 | sed 's/^/    /' || true
    done <"$work/failed" >"$work/list"
    head -n "$LIST_LINES_MAX" "$work/list"
    (($(wc -l <"$work/list") <= LIST_LINES_MAX)) || echo "and more"
    return 1
}

# The block of README that is marked "sh ci=NAME", run verbatim.
readme_command() {
    local block
    block=$(awk -v opening="\`\`\`sh ci=$1" '$0 == opening { on = 1; next } /^```/ { on = 0 } on' README.md)
    [[ -n $block ]] || { echo "README.md has no block marked 'sh ci=$1'"; return 1; }
    bash -euo pipefail -c "$block"
}

copy_tree() {
    cd "$root"
    # A file that is tracked but was removed is left out; links stay links.
    git ls-files -z | while IFS= read -r -d '' path; do
        if [[ -e $path || -L $path ]]; then printf '%s\0' "$path"; fi
    done | tar --create --null --files-from - --file - | tar --extract --directory "$tree" --file -
}

# README says python3; take 3.11, the oldest version that is supported, if there is one.
choose_python() {
    local found
    for name in python3.11 python3; do
        found=$("$name" -c 'import sys; sys.version_info >= (3, 11) and print(sys.executable)' 2>/dev/null) || continue
        [[ -n $found ]] || continue
        printf '#!/bin/sh\nexec "%s" "$@"\n' "$found" >"$work/bin/python3"
        chmod +x "$work/bin/python3"
        "$work/bin/python3" --version
        return
    done
    echo "There is no Python 3.11 or newer on the path."
    return 1
}

prepare() {
    step "copy of the tree" copy_tree
    step "python" choose_python
    [[ ! -s $work/failed ]] || { report; exit 1; }
    export PATH=$work/bin:$PATH
}

# --- environments, which need no compiler except for hnswlib: it has no wheels ---------------------

environment() {
    "$work/bin/python3" -m venv "$work/$1"
    "$work/$1/bin/pip" install --quiet --only-binary :all: --no-binary hnswlib --editable "$2"
}

# Every bridge at pinned versions, with the second major version of MCP's SDK.
install_bridges() {
    environment bridges '.[testing,conformance,hnsw,langchain,langchain-conformance,langgraph,mcp,mcp2,minilm,otel,otel-sdk,sdks,sources]'
    "$work/bridges/bin/pip" check
}

# The first major version of MCP's SDK, which other packages need.
install_mcp1() { environment mcp1 '.[testing,mcp,mcp1]'; }

# --- tests of bridges --------------------------------------------------------------------------------

EXTRAS=(anthropic chromadb google_adk hnsw langchain langgraph mcp minilm openai_agents otel)

# The files that have one of some marks, so that pytest collects no other file.
files_with() {
    local marks
    marks=$(IFS='|'; echo "$*")
    grep -rlE --include='test_*.py' "mark\.($marks)\b" tests | sort
}

# bridge_tests OPTIONS: the marks of all extras. LangChain's suites have async tests. A folder of the checkout has
# the name of a package of OpenAI, "agents", so the checkout is not the first place to import from.
bridge_tests() {
    local expression=${EXTRAS[*]} files
    mapfile -t files < <(files_with "${EXTRAS[@]}")
    CERATA_MCP_OTHER=$work/mcp1/bin/python "$work/bridges/bin/pytest" --quiet -m "(${expression// / or })$1" \
        -o pythonpath= -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function "${files[@]}"
}

# mcp1_tests OPTIONS: clients of the first major version against servers of both.
mcp1_tests() {
    local files
    mapfile -t files < <(files_with mcp)
    CERATA_MCP_OTHER=$work/bridges/bin/python "$work/mcp1/bin/pytest" --quiet -m "mcp$1" "${files[@]}"
}

# importer_tests NAME: new files of other memories by their own packages, and the importers over these files.
importer_tests() {
    "$work/bridges/bin/python" tests/integrations/make_sources.py "$work/sources-$1"
    CERATA_SOURCES=$work/sources-$1 .venv/bin/pytest --quiet tests/integrations/test_importers.py -k "real_package or each_kind"
}
