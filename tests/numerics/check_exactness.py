"""check_exactness.py PROGRAM: computes with fractions what PROGRAM (print_cases.cpp) computed with the kernels.

Every sum, product, quotient and root is taken exactly and then rounded once to the format that the
rules of docs/numerics.md name, so this shares nothing with the kernels, not even the processor's arithmetic.
"""

import json
import math
import subprocess
import sys
from fractions import Fraction


def rounded(value, digits, least):
    """To the nearest multiple of a power of two with `digits` binary digits, ties to even; `least`: of the denormals."""
    if value == 0:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** max(exponent - digits + 1, least)
    return round(value / step) * step


def fp32(value):
    return rounded(value, 24, -149)


def fp64(value):
    return rounded(value, 53, -1074)


def bf16(value):
    return rounded(value, 8, -133)


def root(value):
    """The square root, near enough that rounding it to fp32 or fp64 is rounding the exact one."""
    if value == 0:
        return value
    scale = 4 ** (200 + max(0, value.denominator.bit_length() - value.numerator.bit_length()))
    scaled = value * scale
    floor = math.isqrt(int(scaled))
    is_exact = floor * floor == scaled
    return (floor + (0 if is_exact else Fraction(1, 2))) / math.isqrt(scale)


def numbers(texts):
    return [Fraction(float.fromhex(text)) for text in texts]


def check(name, expected, found):
    wrong = [i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b]
    assert not wrong, f"{name}: {len(wrong)} of {len(found)} differ, first {wrong[0]}: {expected[wrong[0]]} {found[wrong[0]]}"
    print(f"{name}: {len(found)} values exact")


def check_ordered_sums(name, case):
    accumulator = None
    for micro_batch in case["inputs"]:
        ranks = [numbers(rank) for rank in micro_batch]
        total = ranks[0]
        for rank in ranks[1:]:
            total = [fp32(a + b) for a, b in zip(total, rank)]
        accumulator = total if accumulator is None else [fp32(a + b) for a, b in zip(accumulator, total)]
    check(name, accumulator, numbers(case["sum"]))


def square_sum_of_quantum(values):
    lanes = [Fraction(0)] * 32
    for i, value in enumerate(values):
        lanes[i % 32] = fp64(lanes[i % 32] + fp64(value * value))
    for half in (16, 8, 4, 2, 1):
        lanes = [fp64(lanes[i] + lanes[i + half]) for i in range(half)]
    return lanes[0]


def check_square_sum(name, case):
    values = numbers(case["values"])
    quanta = [square_sum_of_quantum(values[first:first + 256]) for first in range(0, len(values), 256)]
    check(name, [fp64(sum(quanta))], numbers([case["sum"]]))


def adam(scalars, total, w, m, v):
    factor, beta1, rest1, beta2, rest2, a, q, eps, decay = scalars
    g = fp32(total * factor)
    w = fp32(w * decay)
    m = fp32(fp32(beta1 * m) + fp32(rest1 * g))
    v = fp32(fp32(beta2 * v) + fp32(fp32(rest2 * g) * g))
    divisor = fp32(fp32(fp32(root(v)) / q) + eps)
    return fp32(w - fp32(a * fp32(m / divisor))), m, v


def check_adam(case):
    scalars = numbers(case["scalars"])
    before = [numbers(texts) for texts in case["before"]]
    after = [adam(scalars, *element) for element in zip(numbers(case["sum"]), *before)]
    for name, expected, found in zip(("master", "m", "v"), zip(*after), case["after"]):
        check("adam " + name, expected, numbers(found))


def main():
    cases = json.loads(subprocess.run(sys.argv[1], check=True, capture_output=True, text=True).stdout)
    check_ordered_sums("sums over ranks, fp32", cases["fp32"])
    check_ordered_sums("sums over ranks, bf16", cases["bf16_sums"])
    check_square_sum("sum of squares", cases["norm"])
    check_square_sum("sum of squares of all magnitudes", cases["norm_of_all_magnitudes"])
    check("rounding to bf16", [bf16(x) for x in numbers(cases["bf16"]["values"])], numbers(cases["bf16"]["rounded"]))
    check_adam(cases["adam"])


main()
