"""Expected values of tests/unit_base.c: mw_hash3 and mw_perm_at from their definitions, in Python's integers."""

MASK = (1 << 64) - 1


def mix64(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def hash3(seed, stream, counter):
    h = mix64((seed + 0x9E3779B97F4A7C15) & MASK)
    h = mix64(h ^ ((stream * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) & MASK))
    return mix64(h ^ ((counter * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & MASK))


def permutation(n, seed, stream):
    key = hash3(seed, stream, n)
    half = 1
    while half < 32 and (1 << (2 * half)) < n:
        half += 1
    mask = (1 << half) - 1

    def at(x):
        while True:
            left, right = x >> half, x & mask
            for k in range(12 if half <= 4 else 4):
                f = mix64(key ^ ((right + (k + 1) * 0x9E3779B97F4A7C15) & MASK)) & mask
                left, right = right, left ^ f
            x = (left << half) | right
            if x < n:
                return x

    return [at(i) for i in range(n)]


if __name__ == "__main__":
    for args in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 2, 3), (MASK, MASK, MASK), (42, 7, 1000000)]:
        print("hash3%s = 0x%016x" % (args, hash3(*args)))
    print("permutation(10, 1, 2) =", permutation(10, 1, 2))
    print("permutation(300, 1, 2)[:10] =", permutation(300, 1, 2)[:10])
