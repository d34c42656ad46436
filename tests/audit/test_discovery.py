"""Everything that is written is examined: every module of mechanisms, every family, once each."""

import pkgutil
from importlib import import_module

import pytest

from discreet.audit import families, mechanisms
from discreet.audit.claims import SHARES, AuditRun, Claim, Finding, Method, PlantedFault, Scope
from discreet.audit.discovery import all_claims, all_faults, unaudited
from discreet.families.registration import FAMILIES

MECHANISMS = [
    found.name for found in pkgutil.iter_modules(mechanisms.__path__, f"{mechanisms.__name__}.")
]


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_module_of_mechanisms_gives_claims_or_faults(name: str) -> None:
    module = import_module(name)
    rows = [*getattr(module, "claims", tuple)(), *getattr(module, "faults", tuple)()]
    assert rows
    assert all(isinstance(row, Claim | PlantedFault) for row in rows)


def test_what_the_modules_of_mechanisms_give_is_found() -> None:
    claims, faults = ({row.name for row in rows} for rows in (all_claims(), all_faults()))
    for name in MECHANISMS:
        module = import_module(name)
        assert {row.name for row in getattr(module, "claims", tuple)()} <= claims
        assert {row.name for row in getattr(module, "faults", tuple)()} <= faults


FAMILY_MODULES = [
    found.name
    for found in pkgutil.walk_packages(families.__path__, f"{families.__name__}.")
    if not found.ispkg
]


@pytest.mark.parametrize("name", FAMILY_MODULES)
def test_what_the_modules_of_a_family_give_is_found(name: str) -> None:
    claims, faults = ({row.name for row in rows} for rows in (all_claims(), all_faults()))
    module = import_module(name)
    assert {row.name for row in getattr(module, "claims", tuple)()} <= claims
    assert {row.name for row in getattr(module, "faults", tuple)()} <= faults


@pytest.mark.parametrize("algorithm", FAMILIES)
def test_every_family_has_claims_and_planted_faults_about_a_person(algorithm: str) -> None:
    module = import_module(f"{families.__name__}.{algorithm.replace('-', '_')}")
    assert Scope.PERSON in {claim.scope for claim in module.claims()}
    assert Scope.PERSON in {fault.scope for fault in module.faults()}


def test_no_family_is_left_out() -> None:
    assert unaudited() == []


def test_a_family_without_an_audit_is_named() -> None:
    assert unaudited([*FAMILIES, "a-sixth"]) == ["a-sixth"]


def test_every_name_is_used_once() -> None:
    names = [row.name for row in (*all_claims(), *all_faults())]
    assert len(set(names)) == len(names)


def test_every_scope_and_every_method_is_used_and_faults_are_planted_in_both_scopes() -> None:
    claims = list(all_claims())
    assert {claim.scope for claim in claims} == set(Scope)
    assert {claim.method for claim in claims} == set(Method)
    assert {fault.scope for fault in all_faults()} == set(Scope)


def test_there_is_luck_enough_for_every_claim_and_every_fault() -> None:
    """An examination may draw on the allowance more than once; most of them never do."""
    sampled = [claim for claim in all_claims() if claim.method is not Method.EXACT]
    assert len(sampled) + len(list(all_faults())) < SHARES


def test_a_module_without_faults_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    def holds(_: AuditRun) -> Finding:
        return Finding(0.0, 0.0, holds=True)

    module = import_module(f"{mechanisms.__name__}.calibrations")
    monkeypatch.setattr(module, "claims", lambda: [Claim("planted here", Method.EXACT, holds)])
    assert not hasattr(module, "faults")
    assert "planted here" in {claim.name for claim in all_claims()}
