"""Answers as JSON, put together from parts that many of them share.

Building dictionaries and handing them to a serialiser costs more than the decision. Everything
here that could need escaping goes through the serialiser once, and is kept where it repeats.
"""

import functools
import math
import time
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from discreet.families.budgets import PrivacyReport
from discreet.families.questions import Receipt, Recommendation
from discreet.privacy.accountants import Budget

_MOST_KEPT = 4_096


def _json(value: Any) -> str:
    return to_json(value).decode()


@functools.lru_cache(maxsize=_MOST_KEPT)
def moment(seconds: int) -> str:
    """Return a moment as RFC 3339; every request of a second asks for the same few."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def amount(budget: Budget | None) -> dict[str, float | None]:
    """Return a cost or limit; null where nothing is protected, or something was exact."""
    if budget is None or math.isinf(budget.epsilon):
        return {"epsilon": None, "delta": None}
    return {"epsilon": budget.epsilon, "delta": budget.delta}


def account(report: PrivacyReport) -> dict[str, Any]:
    """Return what an account has spent and what is left, and until when."""
    shown = {"spent": amount(report.spent), "remaining": amount(report.remaining)}
    if report.resets_at is None:
        return shown
    return {**shown, "resets_at": moment(report.resets_at)}


_reports: dict[int, tuple[PrivacyReport, str]] = {}
"""Reports by identity, with their text: accounts that are equal share one report."""


def privacy_json(report: PrivacyReport) -> str:
    """Return what an answer cost and what is left; many accounts are equal."""
    known = _reports.get(id(report))
    if known is not None and known[0] is report:
        return known[1]
    text = _json({"epsilon": report.epsilon, **account(report)})
    if len(_reports) >= _MOST_KEPT:
        _reports.clear()
    _reports[id(report)] = report, text
    return text


def recommendation_json(answer: Recommendation, opening: str) -> str:
    """Return the object of one answer; `opening` is its brace, and fields that come first."""
    if answer.described:
        items = ",".join(map(_described_json, answer.items, _vendors(answer), answer.described))
    elif not answer.vendors:
        items = ",".join([_item_json(item) for item in answer.items])
    else:
        items = ",".join(
            _item_json(item) if vendor is None else _json({"id": item, "vendor": vendor})
            for item, vendor in zip(answer.items, answer.vendors, strict=True)
        )
    ending = _ENDINGS[answer.awaiting]
    if answer.reason is not None:
        ending = f',"reason":{_text_json(answer.reason)}{ending}'
    if answer.round is not None:
        ending = f',"round":{_json(answer.round)}{ending}'
    # A recommendation id is base64, and a moment needs no escaping either.
    return (
        f'{opening}"recommendation_id":"{answer.recommendation_id}","items":[{items}],'
        f'"personalised":{"true" if answer.personalised else "false"},'
        f'"privacy":{privacy_json(answer.privacy)},'
        f'"expires_at":"{moment(answer.expires_at)}"{ending}'
    )


_ENDINGS = {None: "}", True: ',"awaiting":true}', False: ',"awaiting":false}'}


def receipt_json(receipt: Receipt, opening: str) -> str:
    """Return the object of one receipt; `opening` as above."""
    return opening + _RECEIPTS[receipt.duplicate, receipt.learned]


_RECEIPTS = {
    (duplicate, learned): _json(
        {"accepted": True, "duplicate": duplicate, "learned": learned}
    ).removeprefix("{")
    for duplicate in (False, True)
    for learned in (False, True, None)
}


def _vendors(answer: Recommendation) -> tuple[str | None, ...]:
    return answer.vendors or (None,) * len(answer.items)


def _described_json(item: str, vendor: str | None, described: Mapping[str, Any]) -> str:
    named = {"id": item} if vendor is None else {"id": item, "vendor": vendor}
    return _json({**named, **described})


@functools.lru_cache(maxsize=_MOST_KEPT)
def _item_json(item: str) -> str:
    return _json({"id": item})


@functools.lru_cache(maxsize=64)
def _text_json(text: str) -> str:
    return _json(text)
