#!/usr/bin/env bash
# cli_bench.sh: `mixwild bench` from outside: every form has the same items, and the derived figures follow from the measured
# ones. TAP; no speed is asserted. The program is $MIXWILD.
set -u
. "${MW_SRCDIR:-.}/tests/cli_util.sh"

# bench OPTION...: true when it ended well
bench() { run bench --repeats 1 --memory 8 "$@"; status_is 0; }

names="read copy gather-far gather-near fma dense-dot dense-axpy dense-step sparse-dot sparse-push sparse-push-atomic sparse-step
	merge merge-atomic view sigmoid"

bench && [ ! -s "$tmp/err" ] && for name in $names; do grep -Eq "^$name +[0-9]" "$tmp/out" || exit 1; done
report "text has every item"

bench --format csv
cp "$tmp/out" "$tmp/csv"
# name,kernel,unit,median,min,max,repeats,flops_per_s,bytes_per_s,gathers_per_s,bound,reached
(for name in $names; do grep -q "^$name,[01],[A-Z]*[BOP]*/s," "$tmp/csv" || exit 1; done) &&
	awk -F, 'NR > 1 && !($4 > 0 && $5 <= $4 && $4 <= $6 && $7 == 1) { exit 1 }' "$tmp/csv"
report "csv: least <= median <= largest, all positive"

# A step on dense rows: 4 operations and 4 bytes an element; on sparse ones 4 operations, 8 bytes and 2 reads.
awk -F, 'function near(a, b) { return a > 0.999 * b && a < 1.001 * b }
	{ rate[$1] = $4 * 1e6; flops[$1] = $8; bytes[$1] = $9; gathers[$1] = $10 }
	END {
		exit !(near(flops["dense-step"], 4 * rate["dense-step"]) && near(bytes["dense-step"], 4 * rate["dense-step"]) &&
			near(flops["sparse-step"], 4 * rate["sparse-step"]) && near(bytes["sparse-step"], 8 * rate["sparse-step"]) &&
			near(gathers["sparse-step"], 2 * rate["sparse-step"]) && near(bytes["read"], 1000 * rate["read"]))
	}' "$tmp/csv"
report "csv: operations, bytes and reads follow from the rate"

# The bound is the lowest of memory, reads and arithmetic, and `reached` the share of it.
awk -F, '{ have[$1] = $1 == "gather-near" ? $4 * 1e6 : $4 * 1e9 }
	$1 ~ /^(dense-(dot|axpy|step)|sparse-(dot|push|step))$/ {
		flops = $8 / have["fma"]; bytes = $9 / have["read"]; reads = $10 / have["gather-near"]
		most = bytes; what = "read"
		if (reads > most) { most = reads; what = "gather-near" }
		if (flops > most) { most = flops; what = "fma" }
		if ($11 != what || $12 < 0.998 * most || $12 > 1.002 * most) exit 1
		seen++
	}
	END { if (seen != 6) exit 1 }' "$tmp/csv"
report "csv: what bounds a kernel, and how near it comes"

bench --format json --isa portable
grep -q '"isa": "portable"' "$tmp/out" && [ "$(grep -c '"name": ' "$tmp/out")" -ge 16 ]
report "json, and the instruction set that was asked for"

"$mixwild" bench --isa vax >"$tmp/out" 2>"$tmp/err"
[ $? -ne 0 ] && grep -q "vax" "$tmp/err"
report "an instruction set that isn't there"

taskset -c "$(taskset -cp $$ | sed 's/.*[: ]\([0-9]*\).*/\1/')" "$mixwild" bench --repeats 1 --memory 8 >"$tmp/out" 2>"$tmp/err" &&
	grep -q "^core-to-core  *- .*two CPUs" "$tmp/out"
report "one CPU: no latency between cores, and it says so"

echo "1..$n"
