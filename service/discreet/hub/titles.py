"""How a title found on this device finds an item of the public catalogue.

Titles are compared as whole titles, never by looking for one inside another: "It" stands inside
half of all sentences. Two spellings are the same title if they agree after accents, case,
punctuation and a trailing article are evened out: "Lantern Room, The (1998)" is "The Lantern Room
(1998)". A year in brackets may be missing on either side; a title that then fits several items
fits none, and is reported as such.

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
class Spelling:
    """A title evened out, and its year if it names one."""

    text: str
    year: str = ""


class Miss(Enum):
    """Why a title leads to no item."""

    UNKNOWN = "unknown"
    AMBIGUOUS = "ambiguous"


def spell(title: str) -> Spelling:
    """Even a title out."""
    text, year = title.strip(), ""
    if found := _YEAR.search(text):
        text, year = text[: found.start()], found.group(1)
    text = unicodedata.normalize("NFKD", text).casefold()
    text = "".join(letter for letter in text if not unicodedata.combining(letter)).strip()
    if moved := _ARTICLE.match(text):
        text = f"{moved['article']} {moved['rest']}"
    text = text.replace("&", " and ").replace("'", "").replace("’", "")
    return Spelling(" ".join(re.findall(r"\w+", text)), year)


class TitleIndex:
    """The catalogue's titles and ids, ready to be looked up."""

    def __init__(self, items: Iterable[tuple[str, str]]) -> None:
        """Take pairs of id and title."""
        self._ids: set[str] = set()
        self._by_text: dict[str, dict[str, list[str]]] = {}
        for item, title in items:
            self._ids.add(item)
            spelling = spell(title)
            if spelling.text:
                years = self._by_text.setdefault(spelling.text, {})
                years.setdefault(spelling.year, []).append(item)

    def find(self, title: str) -> str | Miss:
        """Return the item of a title or id that a person wrote into a list."""
        exact = title.strip()
        return exact if exact in self._ids else self._spelt(spell(title))

    def find_page(self, page_title: str) -> str | Miss:
        """Return the item that a browser's page title names."""
        whole = spell(page_title)
        if self._solid(whole, first=True) and isinstance(found := self._spelt(whole), str):
            return found
        missed = Miss.UNKNOWN
        for place, part in enumerate(_parts(page_title)):
            spelling = spell(part)
            if not self._solid(spelling, first=place == 0):
                continue
            found = self._spelt(spelling)
            if isinstance(found, str):
                return found
            if found is Miss.AMBIGUOUS:
                missed = found
        return missed

    def _spelt(self, spelling: Spelling) -> str | Miss:
        years = self._by_text.get(spelling.text, {})
        if spelling.year in years:
            fitting = years[spelling.year]
        elif spelling.year:
            fitting = years.get("", [])
        else:
            fitting = [item for items in years.values() for item in items]
        if not fitting:
            return Miss.UNKNOWN
        return fitting[0] if len(fitting) == 1 else Miss.AMBIGUOUS

    @staticmethod
    def _solid(spelling: Spelling, *, first: bool) -> bool:
        if " " in spelling.text or spelling.year:
            return True
        return first and len(spelling.text) >= _SHORTEST_LONE_WORD


def _parts(page_title: str) -> Iterator[str]:
    for part in _SEPARATORS.split(page_title):
        if part and part.strip():
            yield part
