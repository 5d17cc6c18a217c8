import struct
import sys
from fractions import Fraction

for line in open(sys.argv[1]):
    values = [struct.unpack(">d", bytes.fromhex(word))[0] for word in line.split()]
    total = sum(map(Fraction, values), Fraction(0))
    try:
        result = total.numerator / total.denominator
    except OverflowError:
        result = float("inf") if total > 0 else float("-inf")
    print(struct.pack(">d", result).hex())
