import sys
from operator import mul

MASK = (1 << 64) - 1


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


RANDOM = [mix((i + 1) * 0x9E3779B97F4A7C15 & MASK) for i in range(256)]
LOW = [random & 0xFFFFFFFF | 1 for random in RANDOM]
HIGH = [random >> 32 | 1 for random in RANDOM]


def quantum_hash(parameter, first, data):
    words = memoryview(data + bytes(-len(data) % 4)).cast("I")
    key = mix(mix(mix(parameter) + first & MASK) + len(data) & MASK)
    low = mix(sum(map(mul, words, LOW)) & MASK ^ key)
    high = mix(sum(map(mul, words, HIGH)) + low & MASK)
    return high << 64 | mix(low + high & MASK)


def weights_hash(parameters):
    total = 0
    for index, (element_bytes, data) in enumerate(parameters):
        for first in range(0, len(data) // element_bytes, 256):
            quantum = data[first * element_bytes : (first + 256) * element_bytes]
            total += quantum_hash(index, first, quantum)
    return f"{total % (1 << 128):032x}"


if __name__ == "__main__":
    files = [argument.split(":", 1) for argument in sys.argv[1:]]
    print(weights_hash([(int(element_bytes), open(path, "rb").read()) for element_bytes, path in files]))
