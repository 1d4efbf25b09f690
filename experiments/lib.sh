# shellcheck shell=bash
# lib.sh: what the experiments' run scripts share. A script sets `name`, sources this, fills $out (runs/experiments/NAME) and
# calls `keep FILE...` at its end: figures and numbers are copied into the experiment's folder if it was asked to (--keep).
# Environment: MIXWILD, the program (default ./mixwild in the repository); OUT, another folder than runs/experiments.

set -eu -o pipefail
export LC_ALL=C OPENBLAS_NUM_THREADS=1
unset OMP_NUM_THREADS OMP_PLACES OMP_PROC_BIND
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$root/experiments/$name
mixwild=$(realpath "${MIXWILD:-$root/mixwild}")
keep=no
for argument; do
	case $argument in
	--keep) keep=yes ;;
	--full) full=yes ;;
	*)
		echo "usage: experiments/$name/run [--full] [--keep]" >&2
		exit 2
		;;
	esac
done
[ -x "$mixwild" ] || { echo "$name: there is no $mixwild: build it first (make), or set MIXWILD" >&2; exit 2; }
cd "$root"
out=${OUT:-runs/experiments}/$name
mkdir -p "$out"
begin_s=$EPOCHREALTIME
done_before=$(find "$out" -name run.json | wc -l)
failures=0

say() { echo "$name: $*" >&2; }

# require WHAT COMMAND...: count a claim of the README that does not hold; the script goes on and fails at its end
require() {
	local what=$1
	shift
	if "$@"; then
		say "holds: $what"
	else
		say "DOES NOT HOLD: $what"
		failures=$((failures + 1))
	fi
}

# near VALUE WANTED TOLERANCE; at_least VALUE LEAST; at_most VALUE MOST. No number is no match.
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { exit !(a != "" && a - b <= t && b - a <= t) }'; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a >= b) }'; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a <= b) }'; }

# columns FILE.csv NAME...: these columns, parted by tabs, with the header; quotation marks are understood
columns() {
	local file=$1
	shift
	awk -v names="$*" '
		function cut(line, f,   i, c, q, k, s) { k = 1; s = ""; q = 0
			for (i = 1; i <= length(line); i++) { c = substr(line, i, 1)
				if (c == "\"") q = !q; else if (c == "," && !q) { f[k++] = s; s = "" } else s = s c }
			f[k] = s; return k }
		NR == 1 { m = cut($0, f); n = split(names, want, " ")
			for (j = 1; j <= n; j++) for (i = 1; i <= m; i++) if (f[i] == want[j]) at[j] = i
			for (j = 1; j <= n; j++) if (!(j in at)) { print "no column " want[j] > "/dev/stderr"; exit 1 } }
		{ cut($0, f); for (j = 1; j <= n; j++) printf "%s%s", f[at[j]], j < n ? "\t" : "\n" }' "$file"
}

# statistic SERIES COLUMN ARGUMENT...: a number that `mixwild plot ARGUMENT... --format csv` prints about a series
statistic() {
	local series=$1 column=$2
	shift 2
	"$mixwild" plot "$@" --format csv 2>/dev/null >"$out/.statistics"
	columns "$out/.statistics" series "$column" | awk -F'\t' -v s="$series" '$1 == s { print $2 }'
}

# figure NAME ARGUMENT...: draw $out/NAME.svg
figure() {
	local file=$1
	shift
	"$mixwild" plot "$@" --out "$out/$file.svg" >/dev/null
}

# sweep FILE [FOLDER]: what the job file describes, into $out/FOLDER
sweep() { "$mixwild" sweep "$1" --out "$out/${2:-runs}" >"$out/${2:-runs}.txt"; }

# keep_results FILE...: the last line of a script: write origin.txt (full-origin.txt), copy the files if wanted, fail if a claim failed
keep_results() {
	local seconds origin=${full:+full-}origin.txt
	seconds=$(awk -v a="$begin_s" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.0f", b - a }')
	{
		echo "command   experiments/$name/run${full:+ --full} --keep"
		echo "version   $("$mixwild" --version), commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD -- src 2>/dev/null || echo " and changes")"
		echo "machine   $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, Linux $(uname -r)"
		echo "load      $(cut -d ' ' -f 1-3 /proc/loadavg) (1, 5, 15 minutes, at the end)"
		echo "seeds     as in the job file and in the column seed"
		echo "took      $seconds s$([ "$done_before" -eq 0 ] || echo ", where $done_before runs had been done before")"
	} >"$out/$origin"
	say "took $seconds s; results in $out"
	if [ $keep = yes ]; then
		local file
		for file; do cp "$out/$file" "$here/"; done
		cp "$out/$origin" "$here/"
	fi
	[ $failures -eq 0 ]
}
