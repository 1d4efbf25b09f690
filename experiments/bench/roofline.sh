#!/usr/bin/env bash
# The roofline of this machine with our kernels on it: `mixwild bench`, its CSV and a drawing of it.
#
# Environment: MIXWILD (./mixwild), OUT (bench-out)
set -eu -o pipefail
export LC_ALL=C
mixwild=${MIXWILD:-./mixwild} out=${OUT:-bench-out}
mkdir -p "$out"
"$mixwild" bench --repeats 15 --format csv >"$out/roofline.csv"
command -v gnuplot >/dev/null || exit 0
# field NAME COLUMN: of one line of the CSV
field() { awk -F, -v name="$1" -v column="$2" '$1 == name { print $column }' "$out/roofline.csv"; }
memory=$(field read 4) peak=$(field fma 4) reads=$(field gather-near 4)
# Operations a second over operations a byte; kernels on data in a cache have no place on it.
awk -F, '$2 == 1 && $9 > 0 { printf "%.4g %.5g \"%s\"\n", $8 / $9, $8 / 1e9, $1 }' "$out/roofline.csv" >"$out/roofline.points"
gnuplot <<TXT
set terminal svg size 800,560 font 'sans,12'
set output '$out/roofline.svg'
set logscale xy
set xrange [0.05:16]
set yrange [0.05:*]
set key left top
set grid
set xlabel 'operations a byte of memory'
set ylabel 'GFLOP/s, one thread'
roof(x) = x * $memory < $peak ? x * $memory : $peak
plot roof(x) lw 2 lc rgb '#222222' title sprintf('memory %.3g GB/s, arithmetic %.3g GFLOP/s', $memory, $peak), \
	2 * $reads / 1000 dt 2 lw 2 lc rgb '#aa3377' title sprintf('%.3g reads/s at an index, two operations each', $reads * 1e6), \
	'$out/roofline.points' using 1:2 with points pt 7 lc rgb '#4477aa' notitle, \
	'' every 2::0 using 1:2:3 with labels right offset char -1, char 0.5 notitle, \
	'' every 2::1 using 1:2:3 with labels left offset char 1, char -0.5 notitle
TXT
echo "$out/roofline.csv, $out/roofline.svg"
