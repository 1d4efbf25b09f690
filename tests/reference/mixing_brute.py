#!/usr/bin/env python3
"""Mixing times by brute force, for tests/unit_mixing_exact.c: dense products, every start, nothing clever.
Written from the definitions alone; shares no code with src/mixing. Values in the test: numpy 1.24.2, Python 3.11."""
import itertools
import numpy as np

TOL = 1 + 1e-9


def average(n, i, j):
    w = np.eye(n)
    w[[i, i, j, j], [i, j, i, j]] = .5
    return w


def triple(n_rows, copy, base):
    """server 0 += copy - base; copy and base := the same."""
    w = np.eye(n_rows)
    for r in (0, copy, base):
        w[r] = 0
        w[r, 0], w[r, copy], w[r, base] = 1, 1, -1
    return w


def use_form(events, n, eps=.25):
    """events: one period of matrices or None. Largest over starts of the last k with max |Phi[v,r] - 1| > eps, plus 1."""
    views = [1 + 2 * w for w in range(n)]
    worst = 0
    for s in range(len(events)):
        phi, last = np.eye(1 + 2 * n), 0
        for k in range(1, 6 * len(events)):
            w = events[(s + k - 1) % len(events)]
            if w is not None:
                phi = w @ phi
            if np.abs(phi[np.ix_(views, views)] - 1).max() > eps * TOL:
                last = k
        worst = max(worst, last + 1)
    return worst


def cached_events(n, k):
    return [triple(1 + 2 * n, 1 + 2 * (t % n), 2 + 2 * (t % n)) if (t // n + 1) % k == 0 else None for t in range(n * k)]


def token_events(n, k):
    """Own steps: the worker exchanges after each k-th of its own steps if it holds the token, and passes it on."""
    token, out = 0, []
    for t in range(n * k * n):
        w = t % n
        if (t // n + 1) % k == 0 and w == token:
            out.append(triple(1 + 2 * n, 1 + 2 * w, 2 + 2 * w))
            token = (token + 1) % n
        else:
            out.append(None)
    assert token == 0
    return out


def global_token_events(n, h):
    """Hop every h events of all workers together."""
    return [triple(1 + 2 * n, 1 + 2 * (t // h), 2 + 2 * (t // h)) if t % h == h - 1 else None for t in range(n * h)]


def top(m):
    n = len(m)
    q = np.eye(n) - 1 / n
    return np.linalg.eigvalsh(q @ m @ q)[-1]


def turn(laws, eps=.5):
    """laws[t]: matrices with equal chances at step t (period len). Annealed l2, sup over starts, by windows that end at e."""
    worst = 0
    for e in range(len(laws)):
        m, k = np.eye(len(laws[0][0])), 0
        while k == 0 or top(m) > eps ** 2 * TOL:
            ws = laws[(e - k) % len(laws)]
            m = sum(w.T @ m @ w for w in ws) / len(ws)
            k += 1
        worst = max(worst, k)
    return worst


def counters(n, k_every, eps=.5):
    """async-ring, random worker, own-step counters: the whole chain of counters, from all zero."""
    states = list(itertools.product(range(k_every), repeat=n))
    m = {s: np.eye(n) for s in states}
    edges = [[average(n, w, (w + 1) % n), average(n, w, (w - 1) % n)] for w in range(n)]
    k = 0
    while k == 0 or top(m[states[0]]) > eps ** 2 * TOL:
        new = {}
        for s in states:
            new[s] = 0
            for w in range(n):
                t = s[:w] + ((s[w] + 1) % k_every,) + s[w + 1:]
                new[s] = new[s] + (sum(a.T @ m[t] @ a for a in edges[w]) / 2 if t[w] == 0 else m[t]) / n
        m = new
        k += 1
    return k


def cached_random(n, k_every, runs=200000, eps=.25, seed=1):
    """Steps until worker 1 has what worker 0 pushed at the start, by simulation of the counters: P(later than k) <= eps."""
    rng = np.random.default_rng(seed)
    times = []
    for _ in range(runs):
        c, t, sent = [0, 0], 0, False
        while True:
            t += 1
            w = rng.integers(n)
            if w > 1:
                continue
            c[w] = (c[w] + 1) % k_every
            if c[w] == 0 and w == 0:
                sent = True
            if c[w] == 0 and w == 1 and sent:
                break
        times.append(t)
    times = np.sort(times)
    return next(k for k in range(1, 10 ** 6) if (times > k).mean() <= eps)


if __name__ == "__main__":
    for n, k in ((2, 4), (4, 4), (8, 2)):
        print("cached in turn", n, k, use_form(cached_events(n, k), n))
    for n, k in ((2, 1), (3, 1), (3, 4), (4, 2)):
        print("token-ring", n, k, "own steps", use_form(token_events(n, k), n), "hop every k events",
              use_form(global_token_events(n, k), n))
    for n in (4, 5, 8, 16):
        ring = [[average(n, w, (w + 1) % n), average(n, w, (w - 1) % n)] for w in range(n)]
        cyclic = [[ring[w][0]] for w in range(n)] + [[ring[w][1]] for w in range(n)]
        print("async-ring in turn", n, "random edge", turn(ring), "edges in turn", turn(cyclic))
    idle = [[np.eye(8)]] * 8
    ring = [[average(8, w, (w + 1) % 8), average(8, w, (w - 1) % 8)] for w in range(8)]
    print("async-ring in turn 8 every 4, random edge", turn(idle * 3 + ring), "edges in turn",
          turn(idle * 3 + [[e[0]] for e in ring] + idle * 3 + [[e[1]] for e in ring]))
    for n, k in ((4, 2), (5, 2), (4, 3)):
        print("async-ring random counters", n, k, counters(n, k))
    print("cached random 8 2", cached_random(8, 2))
