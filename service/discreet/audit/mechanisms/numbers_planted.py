"""Noise broken on purpose, put before the examinations of `numbers`."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.claims import AuditRun, Finding, PlantedFault
from discreet.audit.mechanisms.numbers import (
    NumberRelease,
    Sampler,
    examine_digits,
    examine_release_by_sampling,
    examine_sampler,
    examine_shift,
    gaussian_cdf,
    laplace_cdf,
    neighbouring_vectors,
)
from discreet.privacy.events import LaplaceRelease, Released
from discreet.privacy.laplace import LaplaceSampler
from discreet.privacy.noise import Integers, NoiseSource, SystemNoise
from discreet.privacy.numeric import LaplaceMechanism

Floats = npt.NDArray[np.float64]

ZERO, ONE = np.array([0.0, 0.0]), np.array([0.0, 1.0])


@dataclass(frozen=True, slots=True)
class HalvedSensitivity:
    """Noise for a value that moves by half as much as it does."""

    scale: float
    sensitivity: float

    def release(self, values: Any, noise: NoiseSource) -> Released[Any]:
        honest = LaplaceMechanism(scale=self.scale, sensitivity=self.sensitivity)
        hidden = LaplaceMechanism(scale=self.scale / 2, sensitivity=self.sensitivity / 2)
        return Released(hidden.release(values, noise).value, honest.event(size=len(values)))


@dataclass(frozen=True, slots=True)
class RoundingForgotten:
    """Rounded to a grid, and charged as if rounding never pushed two neighbours apart."""

    scale: float
    sensitivity: float
    granularity: float

    def release(self, values: Any, noise: NoiseSource) -> Released[Any]:
        mechanism = LaplaceMechanism(
            scale=self.scale, sensitivity=self.sensitivity, granularity=self.granularity
        )
        value = mechanism.release(values, noise).value
        return Released(value, LaplaceRelease(self.scale, self.sensitivity))


@dataclass(frozen=True, slots=True)
class FloatLaplace:
    """The textbook's inverse transform in double precision, as numpy and many others compute it.

    Close to 0 a double has bits finer than 2**-53; added to 1 they are rounded away. So the low
    bits of an answer tell 0 from 1 more than a quarter of the time (Mironov, CCS 2012).
    """

    scale: float

    def release(self, values: Any, noise: NoiseSource) -> Released[Any]:
        drawn = np.array([self._draw(noise) for _ in range(len(values))])
        return Released(values + drawn, LaplaceRelease(self.scale, 1.0))

    def _draw(self, noise: NoiseSource) -> float:
        uniform = (noise.bits(52) + 0.5) * 2.0**-52
        if uniform < 0.5:
            return self.scale * math.log(2 * uniform)
        return -self.scale * math.log(2 - 2 * uniform)


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """One draw for all entries of a vector: their differences are exact."""

    scale: float

    def release(self, values: Any, noise: NoiseSource) -> Released[Any]:
        mechanism = LaplaceMechanism(scale=self.scale, sensitivity=1.0)
        released = mechanism.release(np.zeros(1), noise)
        return Released(np.asarray(values) + released.value[0], released.event)


@dataclass(frozen=True, slots=True)
class ForgottenEntry:
    """Noise on every entry but the last."""

    scale: float

    def release(self, values: Any, noise: NoiseSource) -> Released[Any]:
        mechanism = LaplaceMechanism(scale=self.scale, sensitivity=1.0)
        released = mechanism.release(np.asarray(values)[:-1], noise)
        value = np.append(released.value, np.asarray(values)[-1])
        return Released(value, mechanism.event(size=len(values)))


def _shift(mechanism: NumberRelease, *, step: float) -> Finding:
    pairs = list(neighbouring_vectors(size=3, sensitivity=1.0, step=step, power=1))
    return examine_shift(mechanism, pairs, gaussian=False)


def _sampled(run: AuditRun, mechanism: NumberRelease) -> Finding:
    return examine_release_by_sampling(run, mechanism, ZERO, ONE, size=10_000)


def _laplace_off(factor: float) -> PlantedFault:
    def sampler(scale: float, size: int) -> Integers:
        return SystemNoise().discrete_laplace(scale=factor * scale, size=size)

    return _broken_laplace(f"Laplace noise at {factor:g} times its scale", sampler)


def _broken_laplace(name: str, sampler: Sampler) -> PlantedFault:
    return PlantedFault(
        name, lambda run: examine_sampler(run, sampler, laplace_cdf(3.0), scale=3.0, size=10_000)
    )


def _gaussian_off(factor: float) -> PlantedFault:
    def sampler(scale: float, size: int) -> Integers:
        return SystemNoise().discrete_gaussian(scale=factor * scale, size=size)

    return PlantedFault(
        f"Gaussian noise at {factor:g} times its scale",
        lambda run: examine_sampler(run, sampler, gaussian_cdf(3.0), scale=3.0, size=10_000),
    )


def _even_numbers_only(scale: float, size: int) -> Integers:
    """Return noise whose last bit is always 0: half the grid never comes out."""
    return 2 * SystemNoise().discrete_gaussian(scale=scale / 2, size=size)


def _two_zeros(scale: float, size: int) -> Integers:
    """Return a geometric number with a sign, drawn once: 0 comes out with either."""
    drawn = SystemNoise().discrete_laplace(scale=scale, size=4 * size)
    negative = np.frombuffer(os.urandom(size), dtype=np.uint8) & 1 > 0
    numbers = drawn[drawn >= 0][:size]
    return np.where(negative, -numbers, numbers)


def _wrong_digit(scale: float, size: int) -> Integers:
    """Return noise whose third binary digit is as likely as its second."""
    sampler = LaplaceSampler(scale)
    sampler._first[2] = sampler._first[1]
    return sampler.draw(size)


def _wrong_last_bit(_: AuditRun) -> Finding:
    """Examine digits of which one is likelier by 2**-64 than it should be."""
    sampler = LaplaceSampler(3.0)
    sampler._first[2] += np.uint64(1)
    return examine_digits(sampler, scale=3.0)


def faults() -> Iterator[PlantedFault]:
    """Yield every broken noise with the examination that must notice it."""
    yield PlantedFault(
        "halved sensitivity", lambda _: _shift(HalvedSensitivity(1.0, 1.0), step=2.0**-20)
    )
    yield PlantedFault(
        "halved sensitivity, found by sampling alone",
        lambda run: _sampled(run, HalvedSensitivity(1.0, 1.0)),
    )
    yield PlantedFault(
        "values rounded to a grid, sensitivity not",
        lambda _: _shift(RoundingForgotten(1.0, 1.0, 0.25), step=0.25),
    )
    yield PlantedFault(
        "float Laplace with its tell-tale low bits",
        lambda run: _sampled(run, FloatLaplace(1.0)),
    )
    yield PlantedFault(
        "reused noise: one draw for a whole vector",
        lambda run: _sampled(run, SharedNoise(1.0)),
    )
    yield PlantedFault(
        "an entry without noise", lambda _: _shift(ForgottenEntry(1.0), step=2.0**-20)
    )
    for factor in (0.7, 1.3):
        yield _laplace_off(factor)
        yield _gaussian_off(factor)
    yield _broken_laplace("Laplace noise that is 0 with either sign", _two_zeros)
    yield _broken_laplace("Laplace noise with one binary digit as likely as another", _wrong_digit)
    yield PlantedFault("Laplace noise with one binary digit's last bit wrong", _wrong_last_bit)
    yield PlantedFault(
        "noise whose last bit is always 0",
        lambda run: examine_sampler(
            run, _even_numbers_only, gaussian_cdf(1000.0), scale=1000.0, size=10_000
        ),
    )
