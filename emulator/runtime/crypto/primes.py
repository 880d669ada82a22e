"""RSA keys from the emulator's seeded stream, so that two runs make the same ones.

For tests only, like all keys that the emulator makes: whoever knows the seed knows them.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SIEVE: Final = 2_000
_ROUNDS: Final = 8


def key_numbers(bits: int, exponent: int, random: Callable[[int], bytes]) -> tuple[int, int, int]:
    """Return two primes and the private exponent of a key with a modulus of so many bits."""
    half = bits - bits // 2
    while True:
        first, second = _prime(half, random), _prime(bits // 2, random)
        phi = (first - 1) * (second - 1)
        if first != second and (first * second).bit_length() == bits and _coprime(exponent, phi):
            larger, smaller = max(first, second), min(first, second)
            return larger, smaller, pow(exponent, -1, math.lcm(first - 1, second - 1))


def _coprime(exponent: int, phi: int) -> bool:
    return math.gcd(exponent, phi) == 1


def _prime(bits: int, random: Callable[[int], bytes]) -> int:
    while True:
        number = int.from_bytes(random(-(-bits // 8)), "big") >> -bits % 8
        number |= 3 << (bits - 2) | 1
        if _is_prime(number):
            return number


@functools.cache
def _small_primes() -> tuple[int, ...]:
    return tuple(
        n for n in range(3, _SIEVE, 2) if all(n % d for d in range(3, math.isqrt(n) + 1, 2))
    )


def _is_prime(number: int) -> bool:
    """Miller-Rabin, with the first primes as bases."""
    if any(number % prime == 0 for prime in _small_primes()):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(base, number, odd, twos) for base in (2, *_small_primes()[: _ROUNDS - 1]))


def _passes(base: int, number: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False
