#!/usr/bin/env bash
# long_numa.sh: the real program on machines with several NUMA nodes, which exist in software only (tests/numa-vm). TAP. Runs
# with MW_LONG=1 (make check-long) or MW_NUMA_VM=1 (./check); $MW_NUMA_SHAPES: NODESxCPUS..., else 2x4 and 4x4.
set -u
src=${MW_SRCDIR:-.}
mixwild=${MIXWILD:-./mixwild}
probe=$(dirname "$mixwild")/tests/numa_probe
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

skip() {
	printf '\n*** NOT TESTED on several NUMA nodes: %s ***\n\n' "$1" >&2
	echo "1..0 # SKIP not tested on several NUMA nodes: $1"
	exit 0
}

[ -n "${MW_LONG:-}${MW_NUMA_VM:-}" ] || skip "only make check-long and ./check boot virtual machines"
[ -x "$probe" ] || skip "$probe is not built (make tests/numa_probe)"

n=0
for shape in ${MW_NUMA_SHAPES:-2x4 4x4}; do
	nodes=${shape%x*} cpus=${shape#*x}
	bash "$src/tests/numa-vm" -n "$nodes" -c "$cpus" -s "${MW_NUMA_SECONDS:-900}" -f "$mixwild" -f "$probe" -f "$src/tests/numa_guest.sh" -- \
		sh /files/numa_guest.sh "$nodes" "$cpus" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	[ $status -eq 77 ] && skip "$(sed -n 's/.*SKIPPED, nothing was tested on several NUMA nodes: \(.*\) \*\*\*/\1/p' "$tmp/err")"
	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*)
			n=$((n + 1))
			echo "${line%%ok *}ok $n - $shape:${line#*-}"
			;;
		"# "*) echo "$line" ;;
		esac
	done <"$tmp/out"
	n=$((n + 1))
	if [ $status -eq 0 ]; then
		echo "ok $n - $shape: all is as planned"
	else
		echo "not ok $n - $shape: status $status"
		tail -n 20 "$tmp/out" "$tmp/err" | sed 's/^/# /'
	fi
done
echo "1..$n"
