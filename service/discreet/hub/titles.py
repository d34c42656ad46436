"""How a title found on this device finds an item of the public catalogue.

Titles are compared as whole titles, never by looking for one inside another: "It" stands inside
half of all sentences. Two spellings are the same title if they agree once accents, case and
punctuation are removed and a trailing article is put in front: "Lantern Room, The (1998)" is "The
Lantern Room (1998)". A year in brackets may be missing on either side; a title that then fits
several items fits none, and is reported as such.

A browser's page titles carry a site's name besides: "The Lantern Room (1998) - Filmhouse". They are
cut at the usual separators, and one of the parts has to be a title as a whole. A single word of a
page title is too little: it counts only with its year, or if it is the page's first part and has at
least five letters.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

_YEAR = re.compile(r"\s*[\[(]((?:18|19|20)\d\d)[\])]\s*$")
_ARTICLE = re.compile(
    r"^(?P<rest>.+), (?P<article>the|a|an|le|la|les|l'|der|die|das|el|los|il|lo|gli)$"
)
_SEPARATORS = re.compile(r"\s+[-–—|·•:»/]\s+|\s*[|•»]\s*")
_SHORTEST_LONE_WORD = 5


@dataclass(frozen=True, slots=True)
class NormalTitle:
    """A title in its plain form, and its year if it names one."""

    text: str
    year: str = ""


class NoMatch(Enum):
    """Why a title leads to no item."""

    UNKNOWN = "unknown"
    AMBIGUOUS = "ambiguous"


def normalise(title: str) -> NormalTitle:
    """Return a title without accents, case, punctuation, and with its article in front."""
    text, year = title.strip(), ""
    if found := _YEAR.search(text):
        text, year = text[: found.start()], found.group(1)
    text = unicodedata.normalize("NFKD", text).casefold()
    text = "".join(letter for letter in text if not unicodedata.combining(letter)).strip()
    if moved := _ARTICLE.match(text):
        text = f"{moved['article']} {moved['rest']}"
    text = text.replace("&", " and ").replace("'", "").replace("’", "")
    return NormalTitle(" ".join(re.findall(r"\w+", text)), year)


class TitleIndex:
    """The catalogue's titles and ids, ready to be looked up."""

    def __init__(self, items: Iterable[tuple[str, str]]) -> None:
        """Take pairs of id and title."""
        self._ids: set[str] = set()
        self._by_text: dict[str, dict[str, list[str]]] = {}
        for item, title in items:
            self._ids.add(item)
            wanted = normalise(title)
            if wanted.text:
                years = self._by_text.setdefault(wanted.text, {})
                years.setdefault(wanted.year, []).append(item)

    def find(self, title: str) -> str | NoMatch:
        """Return the item of a title or id that a person wrote into a list."""
        exact, found = title.strip(), self._look_up(normalise(title))
        if exact not in self._ids or found == exact:
            return found
        # An id that is another item's title could be either.
        return exact if found is NoMatch.UNKNOWN else NoMatch.AMBIGUOUS

    def find_page(self, page_title: str) -> str | NoMatch:
        """Return the item that a browser's page title names."""
        whole = normalise(page_title)
        if self._is_enough(whole, first=True) and isinstance(found := self._look_up(whole), str):
            return found
        missed = NoMatch.UNKNOWN
        for place, part in enumerate(_parts(page_title)):
            wanted = normalise(part)
            if not self._is_enough(wanted, first=place == 0):
                continue
            found = self._look_up(wanted)
            if isinstance(found, str):
                return found
            if found is NoMatch.AMBIGUOUS:
                missed = found
        return missed

    def _look_up(self, wanted: NormalTitle) -> str | NoMatch:
        years = self._by_text.get(wanted.text, {})
        if wanted.year in years:
            fitting = years[wanted.year]
        elif wanted.year:
            fitting = years.get("", [])
        else:
            fitting = [item for items in years.values() for item in items]
        if not fitting:
            return NoMatch.UNKNOWN
        return fitting[0] if len(fitting) == 1 else NoMatch.AMBIGUOUS

    @staticmethod
    def _is_enough(wanted: NormalTitle, *, first: bool) -> bool:
        if " " in wanted.text or wanted.year:
            return True
        return first and len(wanted.text) >= _SHORTEST_LONE_WORD


def _parts(page_title: str) -> Iterator[str]:
    for part in _SEPARATORS.split(page_title):
        if part and part.strip():
            yield part
