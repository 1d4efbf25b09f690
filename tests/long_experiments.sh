#!/usr/bin/env bash
# long_experiments.sh: the quick experiments, whose scripts check what their READMEs claim. TAP. Only with MW_LONG=1 (make
# check-long): minutes.
set -u
src=$(realpath "${MW_SRCDIR:-.}")
mixwild=$(realpath "${MIXWILD:-./mixwild}")

skip() {
	echo "1..0 # SKIP $1"
	exit 0
}
[ -n "${MW_LONG:-}" ] || skip "only make check-long runs the experiments"
command -v gnuplot >/dev/null || skip "figures need gnuplot (gnuplot-nox)"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

n=0
for name in workers frequency slack collapse real-sim staleness partial; do
	n=$((n + 1))
	if MIXWILD=$mixwild OUT=$tmp/out "$src/experiments/$name/run" >"$tmp/log" 2>&1; then
		echo "ok $n - experiments/$name/run: all of its claims hold"
	else
		echo "not ok $n - experiments/$name/run"
		grep -v '^\[' "$tmp/log" | tail -20 | sed 's/^/# /'
	fi
done
echo "1..$n"
