#!/usr/bin/env python3
"""Minimax coefficients of src/base/approx.h (Remez exchange, 60 digits). Needs mpmath; prints C constants.

Each job is (name, function f, weight w, interval, degree): it minimises max |w(t) (f(t) - P(t))|. The weight is chosen
so that the bound printed is the error of the finished function (relative, for cos absolute), coefficients rounded to float.
"""
import struct
from mpmath import mp, mpf, exp, log, sin, cos, sqrt, pi, atanh, lu_solve, matrix

mp.dps = 60


def to_float(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def remez(f, w, a, b, powers):
    n = len(powers)
    x = [(a + b) / 2 - (b - a) / 2 * cos(pi * (2 * i + 1) / (2 * n + 2)) for i in range(n + 1)]
    for _ in range(30):
        A = matrix(n + 1, n + 1)
        rhs = matrix(n + 1, 1)
        for i, t in enumerate(x):
            for j, p in enumerate(powers):
                A[i, j] = t**p
            A[i, n] = (-1) ** i / w(t)
            rhs[i] = f(t)
        sol = lu_solve(A, rhs)
        err = lambda t: w(t) * (f(t) - sum(sol[j] * t**p for j, p in enumerate(powers)))
        grid = [a + (b - a) * k / mpf(1500) for k in range(1501)]
        e = [err(t) for t in grid]
        ext = []
        for k in range(1501):
            if not ext or e[k] * e[ext[-1]] < 0:
                ext.append(k)
            elif abs(e[k]) > abs(e[ext[-1]]):
                ext[-1] = k
        while len(ext) > n + 1:
            ext.pop(0 if abs(e[ext[0]]) < abs(e[ext[-1]]) else -1)
        if len(ext) < n + 1:
            break
        new = [grid[k] for k in ext]
        if max(abs(u - v) for u, v in zip(new, x)) < mpf(10) ** -30:
            break
        x = new
    return [sol[j] for j in range(n)], max(abs(v) for v in e)


def fit(name, f, w, a, b, degree):
    c, _ = remez(f, w, mpf(a), mpf(b), list(range(degree + 1)))
    c = [to_float(v) for v in c]
    grid = [mpf(a) + (mpf(b) - mpf(a)) * k / 4000 for k in range(4001)]
    worst = max(abs(w(t) * (f(t) - sum(v * t**i for i, v in enumerate(c)))) for t in grid)
    print("%s: max error 2^%.1f" % (name, float(log(worst, 2))))
    for i, v in enumerate(c):
        print("    c%d = %sf (%.9g)" % (i, float(v).hex(), float(v)))


h = log(2) / 2 * mpf("1.001")
tiny = mpf(10) ** -20


def exp_tail(r):
    r = r if abs(r) > mpf("1e-12") else mpf("1e-12")
    return (exp(r) - 1 - r) / r**2


def log_tail(t):
    s = sqrt(max(t, tiny))
    return (2 * atanh(s) - 2 * s) / (s * s * s)


def sin_tail(t):
    f = sqrt(max(t, tiny))
    return sin(2 * pi * f) / f


def log_weight(t):
    s = sqrt(max(t, mpf(10) ** -6))
    return s**3 / (2 * atanh(s))


def sin_weight(t):
    f = sqrt(max(t, tiny))
    return f / sin(2 * pi * f)


fit("exp: e^r = 1 + r + r^2 P(r)", exp_tail, lambda r: max(r**2, mpf(10)**-6) / exp(r), -h, h, 4)
fit("log: 2 atanh(s) = 2 s + s^3 P(s^2)", log_tail, log_weight, 0, mpf(1) / 9 * mpf("1.001"), 4)
fit("sin: sin(2 pi f) = f P(f^2)", sin_tail, sin_weight, 0, mpf(1) / 64, 3)
fit("cos: cos(2 pi f) = P(f^2)", lambda t: cos(2 * pi * sqrt(max(t, tiny))), lambda t: mpf(1), 0, mpf(1) / 64, 4)
