# shellcheck shell=bash disable=SC2034 # what is set here is for the test
# cli_util.sh: what the tests of the command line share. Read by them, not run: `. "${MW_SRCDIR:-.}/tests/cli_util.sh"`.
# The program is $MIXWILD; $tmp is a folder that goes away at the end; $n counts what was reported.
mixwild=$(realpath "${MIXWILD:-./mixwild}")
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0 status=
# Threads are bound by our own flags here, whatever a surrounding OpenMP or Slurm job asks for.
unset OMP_NUM_THREADS OMP_PLACES OMP_PROC_BIND SLURM_CPUS_PER_TASK

# report NAME: the outcome of the command before, with what was printed when it failed
report() {
	local ok=$?
	n=$((n + 1))
	if [ $ok -eq 0 ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		sed 's/^/# out: /' "$tmp/out" | head -30
		sed 's/^/# err: /' "$tmp/err" | head -20
		echo "# status: $status"
	fi
}

# skip NAME REASON
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# run ARGUMENT...: fills $tmp/out, $tmp/err, $status
run() {
	"$mixwild" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
}

# status_is S, out_has TEXT, err_has TEXT (fixed strings)
status_is() { [ "$status" -eq "$1" ]; }
out_has() { grep -qF -- "$1" "$tmp/out"; }
err_has() { grep -qF -- "$1" "$tmp/err"; }
