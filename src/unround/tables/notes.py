"""Notes: what the texts around a table say of its counts: how they were rounded, which are exact, what symbols mean.

What a note says is documented by whoever made the table. Only plain statements are understood; others stay notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from unround.mechanisms import Mechanism, Nearest, Rounding
from unround.release import NOT_APPLICABLE, NOT_AVAILABLE, SUPPRESSED, UNRELIABLE, between
from unround.tables.labels import NUMBER_WORDS
from unround.tables.symbols import hidden_range

_ROUNDED = re.compile(
    r"\bround|\bgerundet|\brundung|\barrondi|\bredonde|\barredond|\barrotond|\bafgerond|\bafronding|\bavrund|\bpyöriste",
    re.I,
)
_NOT_ROUNDED = re.compile(
    r"\b(?:not|never|un|nicht|non|no|niet|ikke|inte)[ -]?(?:been |have been |sind |wurden )?"
    r"(?:randomly |random |zufällig )?(?:round|gerundet|arrondi|redonde|arredond|afgerond)|\bungerundet|\bunrounded\b|"
    r"\b(?:is|are|was|were) (?:shown |published |given )?(?:exact(?:ly)?|as (?:it is|they are))\b",
    re.I,
)
_RANDOM = re.compile(r"\brandom|\bzuf[aä]ll|\bal[eé]ato|\bwillekeurig|\btilfeldig|\bslump|\bcasual", re.I)
_BASE = re.compile(
    r"\bbase (?:of )?(\d{1,4})\b|\bmultiples? (?:of|de|di) (\d{1,4}|ten|five|three|hundred)\b|"
    r"\bvielfache[ns]?(?: von)? (\d{1,4})\b|"
    r"\bnearest (?:multiple of )?(\d{1,4}|ten|five|three|hundred|thousand)\b|\bveelvoud(?:en)? van (\d{1,4})\b|"
    r"\b(?:[àa] la |en )?base (?:de )?(\d{1,4})\b|\bm[uú]ltiplos? d[eo] (\d{1,4})\b|"
    r"\b(?:auf|to|à|a|op) (\d{1,4}) (?:gerundet|arrondi|afgerond)\b|\bround(?:ed|ing)? to (?:the )?(\d{1,4})s?\b|"
    r"\bplus proche(?: multiple de)? (\d{1,4})\b|\brr ?(\d{1,2})\b",
    re.I,
)
_NUMBERS = {"three": 3, "five": 5, "ten": 10, "hundred": 100, "thousand": 1000}
_INCOMPLETE = re.compile(
    r"\btotals? includes?\b.*\bnot (?:shown|stated)|\b(?:several|multiple|more than one) (?:\w+ )?"
    r"(?:answer|response|categor|group)|"
    r"\bdo(?:es)? not (?:add|sum)(?: up)? to (?:the )?(?:total|100)|\bnot mutually exclusive|\bmehrfach(?:nennung|antwort)|"
    r"\bplusieurs réponses|\bvarias respuestas|\b(?:are|is) not shown separately",
    re.I,
)
_OF_ROUNDED = re.compile(r"\b(?:from|of|based on|using|aus|des) (?:the )?(?:rounded|gerundeten|effectifs arrondis)\b", re.I)

_MEANINGS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"\bno[tn] applicable|\bentfällt|\bcategory not|\bno aplicable|\bn\.?v\.?t\b"), NOT_APPLICABLE),
    (re.compile(r"\bunreliable|\btoo (?:unreliable|uncertain)|\blow reliab|\bnicht aussagekr|\bpeu fiable"), UNRELIABLE),
    (
        re.compile(
            r"\bconfiden|\bsuppress|\bsecre|\bgeheim|\bhidden|\bwithheld|\bnot (?:published|shown|disclosed|released)|"
            r"\bdisclosure|\bprotect|\bprimary|\bsecondary|\bmasqu|\bocult|\bsegreto|\bvertrouwelijk|\bstatistische ver"
        ),
        SUPPRESSED,
    ),
    (
        re.compile(
            r"\bnot (?:yet )?available|\bunavailable|\bno data|\bmissing|\bnot (?:known|collected)|\bunbekannt|\bnon dispo|"
            r"\bkeine angabe|\bno disponible|\bniet beschikbaar|\bunknown|\bnon disponib"
        ),
        NOT_AVAILABLE,
    ),
    (re.compile(r"\bnil\b|\bzero|\bnull\b|\bnone\b|\bnought|\bnichts\b|\bnéant|\bno (?:cases|persons)|\bcero\b|^0$"), 0),
)  # fmt: skip
_AND_OTHERS = re.compile(
    r"\b(?:one|either) of (?:the )?(?:two|counts|them)\b|"
    r"\b(?:and|or|und|oder|et|ou|y|o)\b.*\b(?:further|other|additional|secondary|complement|protect|beside|weitere|andere|sekundär|"
    r"secondaire|autres?|secundari|otr[oa]s)"
)
"""What stands beside a range where counts outside it are hidden, too."""
_FLAGS = re.compile(
    r"\bprovision|\brevis|\bestimat|\bpreliminar|\bvorläufig|\bberichtigt|\bgeschätzt|\bprovisoire|\bbreak\b|\bcaution"
)
_WORDS = {
    "dash": "-–—", "hyphen": "-–", "asterisk": "*", "star": "*", "two dots": "..", "three dots": "...…", "dot": ".",
    "colon": ":", "strich": "-–", "stern": "*", "tiret": "-–", "astérisque": "*",
}  # fmt: skip
_MEANS = r"(?:=|:|means?\b|denotes?\b|indicates?\b|stands? for\b|bedeutet\b|signifie\b)"


@dataclass(frozen=True, slots=True)
class Documented:
    """What notes say.

    - `mechanism`: How counts were published, with the note that says so.
    - `exact`: Texts of notes that say of some counts that they are not rounded.
    - `signs`: What signs mean, by sign: a code, or a count.
    - `flags`: Signs that leave a number a number.
    - `incomplete`: The note that says that categories do not make up their total: somebody is not shown, or counted twice.
    - `of_rounded`: The note that says that figures were computed from rounded counts.
    - `used`: The notes that were understood.
    """

    mechanism: Mechanism | None = None
    note: str = ""
    exact: tuple[str, ...] = ()
    signs: Mapping[str, int] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    of_rounded: str = ""
    incomplete: str = ""
    used: frozenset[str] = frozenset()


def read_notes(texts: Iterable[str], signs: Iterable[str] = ()) -> Documented:
    """Read the texts around a table, in which some symbols stand for counts.

    >>> found = read_notes(["Counts are randomly rounded to base 3.", "c = confidential", "– = nil"], ["c", "–"])
    >>> found.mechanism, found.signs["–"], found.signs["c"] == SUPPRESSED
    (Rounding(base=3), 0, True)
    >>> read_notes(["Figures are rounded to the nearest 5."]).mechanism
    Nearest(base=5, ties='up')
    >>> read_notes(["c = fewer than 5"], ["c"]).signs["c"] == between(0, 4)
    True
    """
    wanted = [sign for sign in dict.fromkeys(signs) if sign]
    mechanisms: dict[Mechanism, str] = {}
    exact, meanings, flags, used, of_rounded = [], dict[str, int](), set[str](), set[str](), ""
    incomplete = ""
    for text in texts:
        for sentence in _sentences(text):
            if _NOT_ROUNDED.search(sentence):
                exact.append(sentence)
                used.add(text)
            elif (how := _rounding(sentence)) is not None:
                mechanisms.setdefault(how, sentence)
                used.add(text)
            if _INCOMPLETE.search(sentence):
                incomplete = sentence
                used.add(text)
            if _OF_ROUNDED.search(sentence) and re.search(
                r"percent|per cent|%|rate|anteil|prozent|pourcent", sentence, re.I
            ):
                of_rounded = sentence
                used.add(text)
        for sign in wanted:
            meaning = _definition(sign, text)
            if meaning is None:
                continue
            used.add(text)
            if _FLAGS.search(meaning.lower()):
                flags.add(sign)
            elif (code := meaning_of(meaning)) is not None:
                meanings.setdefault(sign, code)
    how, note = next(iter(mechanisms.items())) if len(mechanisms) == 1 else (None, "")
    return Documented(how, note, tuple(exact), meanings, frozenset(flags), of_rounded, incomplete, frozenset(used))


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.;!])\s+|\n", text) if part.strip()]


def _rounding(sentence: str) -> Mechanism | None:
    """Return the mechanism that a sentence states of the counts, or None."""
    if not _ROUNDED.search(sentence):
        return None
    said = {group for matched in _BASE.finditer(sentence) for group in matched.groups() if group}
    bases = {_NUMBERS.get(group.lower(), 0) or int(group) for group in said}
    if len(bases) != 1 or not (base := bases.pop()) > 1:
        return None
    of_figures = re.search(r"\bpercentages?\b|\brates?\b", sentence, re.I)
    if of_figures and not re.search(r"\bcount|\bnumber|\bfigure|\bvalue|\btotal", sentence, re.I):
        return None
    plain = re.search(r"\bnearest\b|\bconventional|\bplus proche|\bkaufmännisch|\bnächst", sentence, re.I)
    return Rounding(base) if _RANDOM.search(sentence) or not plain else Nearest(base)


def _definition(sign: str, text: str) -> str | None:
    """Return what a text says that a symbol means, or None."""
    quoted = re.escape(sign)
    edge = r"(?<![\w.*<])" if sign[0].isalnum() or sign[0] in ".*<" else r"(?:^|(?<=[\s(\"'‘“;,]))"
    within = rf"[\"'‘“(\[]?{quoted}[\"'’”)\]]?"
    shown = r"\b(?:shown|marked|replaced|indicated|denoted|displayed|given)(?: here)? (?:as|by|with)(?: an?| the)? "
    word = next((word for word, of in _WORDS.items() if sign in of), "\0")
    forms = (
        rf"{edge}{within}\s*(?:{_MEANS}|[–-](?=\s\w))\s*([^;\n]+)",
        rf"^\s*{within}\s+((?!\d)\w.*)",
        rf"^(.*?){shown}{within}(?:\W|$)",
        rf"(?i)\b{word}(?:es|s)?\b[^=:]*?{_MEANS}\s*([^;\n]+)",
    )
    matched = next((match for form in forms if (match := re.search(form, text)) is not None), None)
    if matched is None:
        return None
    # Several definitions may follow each other on one line: "p = provisional, r = revised".
    return re.split(r"[,;]?\s+\S{1,8}\s*=\s", matched[1])[0].strip()


def meaning_of(text: str) -> int | None:
    """Return the code, or the count, that an explanation of a symbol stands for; None where it says neither.

    >>> meaning_of("nil"), meaning_of("a count from 1 to 4") == between(1, 4), meaning_of("see page 3")
    (0, True, None)
    >>> meaning_of("fewer than five pupils") == meaning_of("under 5")
    True
    """
    said = " ".join(text.lower().rstrip(".").split())
    ranged = re.search(
        r"(?:from |between )?(\d+) (?:to|and|bis|à|-|–) (\d+)\b|(\d+)\s?[-–]\s?(\d+)\b|"
        r"((?:fewer|less) than|under|below|<|weniger als|unter|moins de|menos de|minder dan) ?(\d+)",
        re.sub(r"[^\W\d_]+", lambda word: str(NUMBER_WORDS.get(word[0], word[0])), said),
    )
    if ranged is not None and _AND_OTHERS.search(said):
        return SUPPRESSED
    if ranged is not None:
        if ranged[6]:
            return between(*(hidden_range(f"<{ranged[6]}") or (0, int(ranged[6]))))
        low, high = int(ranged[1] or ranged[3]), int(ranged[2] or ranged[4])
        return between(low, high) if low <= high else None
    return next((code for pattern, code in _MEANINGS if pattern.search(said)), None)


def exact_codes(notes: Sequence[str], codes: Iterable[str], totals: Iterable[str]) -> list[str]:
    """Return the codes whose counts are not rounded, as notes say: by name, or as totals.

    >>> exact_codes(["All households is not rounded."], ["All households", "Rented"], ["All households"])
    ['All households']
    >>> exact_codes(["Totals are not rounded."], ["Both", "Men"], ["Both"])
    ['Both']
    """
    exact = []
    for code in codes:
        name = re.compile(rf"(?<!\w){re.escape(code)}(?!\w)", re.I)
        if len(code) > 1 and any(name.search(note) for note in notes):
            exact.append(code)
    if not exact and any(re.search(r"\btotals?\b|\bsumme|\binsgesamt|\btotaux|\btotales", note, re.I) for note in notes):
        exact = list(totals)
    return exact
