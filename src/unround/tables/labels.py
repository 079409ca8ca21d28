"""What totals, sexes, areas, codes and counts are called, in the languages of many tables.

Ages: labels such as "5 to 9 years" are ranges, and ranges that tile another one add up to it.

Ages as people write them: "0-14", "65+", "Y15T64", "5 bis unter 10", "moins de 5 ans".

Edges: labels such as "5 to 9 years", "$10,000 to $19,999" or "5 or more persons" name ranges of what units have.

Means and medians say something about groups whose edges are known. Edges are kept a little wide where labels leave it open
whether a range ends with its last whole number or with the next one: somebody of "5 to 9 years" may be nearly ten.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from unround.figures import Group


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split("|"))


_SAID = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
WORDS: Mapping[str, frozenset[str]] = {kind: _words(text) for kind, text in _SAID.items() if isinstance(text, str)}
"""What totals, sexes, areas and so on are called, in the languages of many tables."""

NUMBER_WORDS = {
    word: at
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "un deux trois quatre cinq six sept huit neuf dix onze douze",
        "uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    )
    for at, word in enumerate(words.split(), 1)
} | {"single": 1, "eins": 1, "eine": 1, "une": 1, "una": 1, "couple": 2, "pair": 2, "dozen": 12, "twenty": 20, "thirty": 30}
"""Numbers in words."""
_MONTHS = [_words(names) for names in _SAID["months"]]

_TOTAL = re.compile(
    r"(?:grand |sub)?(?:total(?:[et]|es)?|totaal|summe|insgesamt|gesamt|zusammen|yhteensä|i alt)\b.*|"
    r"ensemble (?:de|du|des) .*|"
    r".*[ ,](?:sub)?(?:total(?:[et]|es)?|totaal|insgesamt|gesamt|zusammen|yhteensä|i alt)|"
    r"(?:the )?(?:whole|entire) (?:country|nation|area|region|territory|state|city|district|county|sample)"
)
_ALL = re.compile(
    r"(?:all|any) (?!others?\b)\w+(?: \w+)?|(?:tous|toutes) les \w+|alle \w+|tod[oa]s (?:las|los|as|os) \w+|"
    r"tutt[ie] (?:gli|le|i) \w+"
)

UNKNOWN = re.compile(
    r"_u|unk|unknown|not stated|not known|not specified|unspecified|no answer|unbekannt|ohne angabe|inconnue?|non déclaré|"
    r"desconocido|sconosciuto|onbekend|ukendt|age unknown|not elsewhere included"
)
"""Categories of those of whom nothing is known; they may or may not be part of a total."""

SDMX_VALUE, SDMX_STATUS = "OBS_VALUE", ("OBS_STATUS", "OBS_FLAG", "CONF_STATUS")
SDMX_OTHERS = frozenset(name.upper() for name in WORDS["sdmx-attributes"]) | {*SDMX_STATUS}
"""Columns of SDMX-CSV that are not dimensions."""


_FOOTNOTE = re.compile(r"(?:\s*(?:[*†‡§¹²³⁴⁵⁶⁷⁸⁹]+|\(\d{1,2}\)|\[(?:note )?\w{1,2}\]))+$")


_OF_WHICH = re.compile(
    r"^(?:of which|of these|thereof|including|davon|darunter|dont|de los cuales|waarvan|dos quais)\b[:,]?\s*"
)


def bare_label(text: str) -> str:
    """Return a label in lower case, without what refers to notes.

    >>> bare_label("Men¹"), bare_label(" Total (1)"), bare_label("All persons [note 2]")
    ('men', 'total', 'all persons')
    >>> bare_label("of which: male"), bare_label(". . Total")
    ('male', 'total')
    """
    return _OF_WHICH.sub("", _FOOTNOTE.sub("", " ".join(text.lower().split()).lstrip(" .·•>»–—…-"))).strip(" .:*")


def counts_people(name: str) -> bool:
    """Return whether the name of a column says whom it counts: an age, a sex or everybody, alone or among other words."""
    parts = [part for part in re.split(r" / | [-–|] |[,;:]", name) if part.strip()]
    if any(map(_says_whom, (name, *parts))) or bare_label(name).startswith(("both sexes ", "all sexes ")):
        return True
    words = name.split()
    halves = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)))
    if any(_says_whom(first) and _says_whom(second) for first, second in halves):  # "Ensemble All ages"
        return True
    return bool(((WORDS["men"] | WORDS["women"]) - WORDS["letters"]) & set(tokens(name)))


def _says_whom(text: str) -> bool:
    return bool(written_age(text) or sex_of(text) or is_total(text, of_places=False))


def tokens(text: str) -> list[str]:
    """Return the words of a name, in lower case.

    >>> tokens("Region_Name (2021)"), tokens("ageGroup")
    (['region', 'name', '2021'], ['age', 'group'])
    """
    apart = re.sub(r"(?<=[a-zà-ÿ])(?=[A-Z])", " ", text)
    return [word for word in re.split(r"[^\w+]+|_", apart.lower()) if word]


def about(name: str, kind: str) -> bool:
    """Return whether the name of a column speaks of something in `WORDS`: as a whole, or in one of its words."""
    return " ".join(name.lower().split()) in WORDS[kind] or not WORDS[kind].isdisjoint(tokens(name))


def is_total(*texts: str, of_places: bool = True) -> bool:
    """Return whether a code, or what people read for it, stands for everybody.

    "All dwellings" is a total, unless codes may be the names of places: then it may be a village.

    >>> is_total("_T"), is_total("Total - Age"), is_total("3", "Both sexes"), is_total("Totnes"), is_total("All Saints Road")
    (True, True, True, False, False)
    """
    for text in texts:
        bare = bare_label(text)
        if bare in WORDS["totals"] or _TOTAL.fullmatch(bare) or (not of_places and _ALL.fullmatch(bare)):
            return True
    return False


def sex_of(*texts: str) -> str | None:
    """Return "men" or "women" if that is what a code or name stands for.

    >>> sex_of("Males"), sex_of("2", "weiblich"), sex_of("All")
    ('men', 'women', None)
    """
    for text in texts:
        bare = bare_label(text)
        if bare in WORDS["men"]:
            return "men"
        if bare in WORDS["women"]:
            return "women"
    return None


def is_country(text: str) -> bool:
    """Return whether a text names a country: the total of a table of its parts, where it stands at either end."""
    return bare_label(text) in WORDS["countries"]


def is_unknown(*texts: str) -> bool:
    """Return whether a category is that of people of whom nothing is known."""
    return any(UNKNOWN.fullmatch(" ".join(text.lower().split())) for text in texts)


EVER = 1_000_000_000
"""Stands for "and over": older than anybody."""

MOST = 1_000
"""Ranges of a table of ages: a longer one counts something else, and every range is laid beside every other."""

Range = tuple[int, int]
ALL: Range = (0, EVER)

_WHOLE = re.compile(
    r"(?:total - )?(?:all )?ages?(?: stats| groups?)?(?: of the population)?(?: - 100% data)?|(?:fe)?males?, total"
)


def age_range(label: str) -> Range | None:
    """Return the ages that a label names, both ends included; None where it names none.

    >>> age_range("5 to 9 years"), age_range("Under 5 years"), age_range("1 person")
    ((5, 9), (0, 4), None)
    >>> age_range("85 years and over") == (85, EVER)
    True
    """
    name = label.strip().lower()
    if _WHOLE.fullmatch(name):
        return ALL
    # Census tables also count children, rooms and cars: only what is a bare number, or speaks of years, is an age.
    return written_age(name) if name.isdigit() or re.search(r"\byears?\b", name) else None


AgeRun = Mapping[Range, str]
"""One table of ages: the keys of lines that follow one upon the other, each range once."""


def age_runs(lines: Sequence[tuple[str, str]]) -> list[AgeRun]:
    """Find the tables of ages among lines of (key, label).

    A label that names no ages ends a table, and so does a range that was there before: the same names come back with
    other meanings. Fewer than two lines are not a table.

    >>> labels = ["0 to 4 years", "5 years and over", "Dwellings", "0 to 4 years", "5 to 9 years", "0 to 4 years"]
    >>> [list(run.values()) for run in age_runs([(str(key), label) for key, label in enumerate(labels)])]
    [['0', '1'], ['3', '4']]
    """
    runs: list[dict[Range, str]] = [{}]
    for key, label in lines:
        ages = age_range(label)
        if ages is None or ages in runs[-1] or ages == ALL:
            runs.append({})
        if ages is not None:
            runs[-1][ages] = key
    return [run for run in runs if len(run) > 1]


def tile(run: AgeRun) -> Iterator[tuple[str | None, tuple[str, ...]]]:
    """Go through the ranges that others tile without gap or overlap, each with the fewest that do, from young to old.

    Both by their keys: None stands for all ages where the table has no line for them.

    >>> labels = ["0 to 14 years", "0 to 4 years", "5 to 14 years", "15 years and over"]
    >>> for total, parts in tile({age_range(label): label for label in labels}):
    ...     print(total, "=", " + ".join(parts))
    0 to 14 years = 0 to 4 years + 5 to 14 years
    None = 0 to 14 years + 15 years and over
    """
    for whole in dict.fromkeys((*run, ALL)) if len(run) <= MOST else ():
        parts = _fewest(whole, [ages for ages in run if ages != whole])
        if parts:
            yield run.get(whole), tuple(run[part] for part in parts)


def _fewest(whole: Range, ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Return the fewest ranges that tile `whole`, or none.

    Going down from its upper end, the best tiling from each age on is one range and the best tiling behind it.
    """
    low, high = whole
    best: dict[int, tuple[Range, ...]] = {high + 1: ()}
    for first, last in sorted(ranges, reverse=True):
        if low <= first and last <= high and last + 1 in best:
            candidate = ((first, last), *best[last + 1])
            if first not in best or len(candidate) < len(best[first]):
                best[first] = candidate
    return best.get(low, ())


_YEARS = r"(?:\s*(?:years?|yrs?\.?|jahren?|jährige|ans|años|anos|anni|jaar|år|lat|vuotta))?(?:\s*(?:old|of age|alt))?"
_BEFORE = r"(?:(?:aged?|ages|alter|âge|edad|de|von)\s*:?\s*)?"
_LAST = 130
"""Nobody is older: a higher number is not an age."""

_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"y_?lt_?(\d+)"), "under"),
    (re.compile(r"y_?ge_?(\d+)"), "over"),
    (re.compile(r"y_?gt_?(\d+)"), "above"),
    (re.compile(r"y_?(\d+)(?:t|-|_|to)y?(\d+)"), "from"),
    (re.compile(r"y_?(\d+)\+"), "over"),
    (re.compile(r"y_?(\d+)"), "single"),
    (re.compile(_BEFORE + r"(\d+)" + _YEARS + r"\s*(?:bis unter|to under|tot|- ?<)\s*(\d+)" + _YEARS), "until"),
    (
        re.compile(
            _BEFORE + r"(\d+)" + _YEARS + r"\s*(?:-|–|—|_|to|bis|à|a|til|till|tot en met|t/m|through)\s*(\d+)" + _YEARS
        ),
        "from",
    ),
    (
        re.compile(
            _BEFORE + r"(\d+)" + _YEARS + r"\s*(?:\+|plus|(?:and|or|&|und|u\.|et|ou|of|y|e|en|og|och) ?"
            r"(?:over|older|more|above|up|mehr|älter|aelter|darüber|plus|"
            r"más|mas|mais|più|ouder|over|eldre|äldre|meer|mehr jahre|older))" + _YEARS
        ),
        "over",
    ),
    (re.compile(_BEFORE + r"(\d+)\s*[-–]"), "over"),
    (re.compile(r"(?:over|über|plus de|>)\s*(\d+)" + _YEARS), "above"),
    (re.compile(r"(?:≥|>=|at least|ab|from)\s*(\d+)" + _YEARS), "over"),
    (
        re.compile(
            r"(?:under|unter|<|less than|below|moins de|menos de|meno di|younger than|jonger dan)\s*(\d+)"
            + _YEARS
        ),
        "under",
    ),
    (re.compile(r"(?:≤|<=|up to|bis)\s*(\d+)" + _YEARS), "most"),
    (re.compile(_BEFORE + r"(\d+)" + _YEARS), "single"),
)  # fmt: skip


def written_age(text: str, most: int = _LAST) -> Range | None:
    """Return the ages that a code or name stands for, both ends included; None where it stands for none.

    With more than `_LAST` for the `most`, ranges of anything else are understood as well: "50–249" employees.

    >>> written_age("0-14"), written_age("Y15T64"), written_age("5 bis unter 10 Jahre"), written_age("Under 5")
    ((0, 14), (15, 64), (5, 9), (0, 4))
    >>> written_age("65 and over") == written_age("65+") == written_age("Y_GE65") == (65, EVER)
    True
    >>> written_age("age_0_14"), written_age("2021"), written_age("North")
    ((0, 14), None, None)
    """
    bare = re.sub(r"(?<=\d),(?=\d{3})", "", _FOOTNOTE.sub("", " ".join(text.lower().split())))
    spaced = re.sub(r"(?<=[a-z])_+(?=\d)|(?<=\d)_+(?=[a-z])", " ", bare)  # age_65_plus
    for form, kind in _FORMS:
        matched = form.fullmatch(bare) or form.fullmatch(spaced)
        if matched is None:
            continue
        ages = [int(number) for number in matched.groups()]
        if max(ages) > (_LAST if kind == "single" else most):
            return None
        first, last = ages[0], ages[-1]
        made = {
            "under": (0, first - 1), "most": (0, first), "over": (first, EVER), "above": (first + 1, EVER),
            "from": (first, last), "until": (first, last - 1), "single": (first, first),
        }[kind]  # fmt: skip
        return made if made[0] <= made[1] else None
    return None


def age_sums(ages: Mapping[str, Range], total: str | None) -> list[tuple[str, tuple[str, ...]]]:
    """Return the ages that others tile, each with the fewest that do.

    >>> age_sums({"0-14": (0, 14), "0-4": (0, 4), "5-14": (5, 14), "15+": (15, EVER)}, "T")
    [('0-14', ('0-4', '5-14')), ('T', ('0-14', '15+'))]
    """
    ranges: dict[Range, str] = {}
    for code, span in ages.items():
        ranges.setdefault(span, code)
    sums = list(_tilings(ranges, total))
    if total is None or not ranges or any(head == total for head, _ in sums):
        return sums
    # A table of adults tiles the ages from its youngest on: its total is not of all ages, but of all that are there.
    whole = min(span[0] for span in ranges), max(span[1] for span in ranges)
    return sums if whole in ranges else list(_tilings({**ranges, whole: total}, None))


def _tilings(ranges: Mapping[Range, str], total: str | None) -> Sequence[tuple[str, tuple[str, ...]]]:
    sums = []
    for head, parts in tile(dict(ranges)):
        whole = total if head is None else head
        if whole is not None and (head is None or ranges.get(ALL) != head or total in (None, head)):
            sums.append((whole, parts))
    return sums


_PART_OF_YEAR = re.compile(
    r"(?:(q|qtr|quarter|t|h|s|half|half-year|hj|halbjahr|quartal|trimestre|semestre)[ .]*([1-4])|"
    r"([1-4])(?:st|nd|rd|th|\.|er|e)? ?(q|quarter|h|half|half-year|quartal|hj|halbjahr|trimestre|semestre))"
)


def _period(text: str) -> tuple[str, Range] | None:
    """Return the year, or "", and the months of it that a label names."""
    bare = bare_label(text)
    matched = re.search(r"(?<!\d)(?:18|19|20|21)\d\d(?!\d)", bare)
    year = matched[0] if matched else ""
    rest = bare.replace(year, "", 1).strip(" ./,'_-–") if year else bare
    if rest in WORDS["years"] or (year and not rest) or is_total(text):
        return year, (1, 12)
    if part := _PART_OF_YEAR.fullmatch(rest):
        number, long = int(part[2] or part[3]), 6 if (part[1] or part[4]) in WORDS["halves"] else 3
        return (year, (long * (number - 1) + 1, long * number)) if long * number <= 12 else None
    ends = [
        next((at for at, names in enumerate(_MONTHS, 1) if end.strip(" .") in names), 0) for end in re.split("[-–]", rest)
    ]
    return (year, (ends[0], ends[-1])) if len(ends) < 3 and 0 < ends[0] <= ends[-1] else None


def is_time(text: str) -> bool:
    """Return whether a label names a year or a date, and nothing else.

    >>> is_time("2021"), is_time("31.12.2022"), is_time("30 June 2023"), is_time("2022/23"), is_time("Census 2021, men")
    (True, True, True, True, False)
    """
    bare = bare_label(text)
    words = re.findall(r"[^\W\d_]+", bare)
    dated = re.search(r"(?<!\d)(?:18|19|20|21)\d\d(?!\d)", bare) is not None
    return dated and all(word in WORDS["around-dates"] or any(word in names for names in _MONTHS) for word in words)


def period_sums(labels: Mapping[str, str]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the periods that others make up, by their codes.

    >>> period_sums({name: name for name in ("Q1", "Q2", "H1", "Q3", "Q4", "2024")})
    [('H1', ('Q1', 'Q2')), ('2024', ('H1', 'Q3', 'Q4'))]
    """
    named = {code: period for code, label in labels.items() if (period := _period(label)) is not None}
    years = {year for year, _ in named.values()} - {""}
    if len(years) == 1 and any(not year for year, _ in named.values()):
        named = {code: ("", months) for code, (_, months) in named.items()}
    sums = []
    for year in dict.fromkeys(year for year, _ in named.values()):
        sums += age_sums({code: months for code, (of, months) in named.items() if of == year}, None)
    return sums


class Edges(NamedTuple):
    """From and to of a group, both included; None where it is open. `of` tells what is measured."""

    of: str
    low: Fraction | None
    high: Fraction | None


_AMOUNT = r"\$?\s*(\d[\d,]*)"
_MONEY_SIGN = re.compile(r"\$\s*\d")
_PLAIN_MONEY = re.compile(r"\d{4,6} (?:to \d{4,6}|or (?:less|more))")
_MONEY_RANGE = re.compile(rf"{_AMOUNT}\s*(?:to|-|–)\s*{_AMOUNT}")
_LESS = re.compile(rf"(?:under|less than) {_AMOUNT}(?: \(including loss\))?|{_AMOUNT} or less")
_MORE = re.compile(rf"{_AMOUNT} (?:and|or) (?:over|more)")
_THINGS = r"(persons?|rooms?|children|child|bedrooms?|minutes)"
_ONE = re.compile(rf"(\d+) {_THINGS}")
_SOME = re.compile(rf"(\d+) to (\d+) {_THINGS}")
_MANY = re.compile(rf"(\d+) or more {_THINGS}|(\d+) (minutes) (?:and|or) (?:over|more)")
_FEWER = re.compile(rf"(?:under|less than) (\d+) {_THINGS}")
_NOTE = re.compile(r"\s*\(\d+\)\s*$")


def edges_of(label: str) -> Edges | None:
    """Return the edges that a label names, or None.

    >>> [str(edge) for edge in edges_of("$10,000 to $19,999")]
    ['money', '10000', '20000']
    >>> edges_of("Under $10,000 (including loss)").low, edges_of("5 or more persons").high, edges_of("Widowed")
    (None, None, None)
    >>> [str(edge) for edge in edges_of("80 to 84 years")], [str(edge) for edge in edges_of("2 persons")]
    (['years', '80', '85'], ['persons', '2', '2'])
    """
    name = _NOTE.sub("", label.replace("_", " ")).strip().lower()
    if _MONEY_SIGN.search(name) or _PLAIN_MONEY.fullmatch(name):
        return _money(name)
    if matched := _ONE.fullmatch(name):
        return Edges(_plural(matched[2]), Fraction(matched[1]), Fraction(matched[1]))
    if matched := _SOME.fullmatch(name):
        return Edges(_plural(matched[3]), Fraction(matched[1]), Fraction(matched[2]))
    if matched := _MANY.fullmatch(name):
        return Edges(_plural(matched[2] or matched[4]), Fraction(matched[1] or matched[3]), None)
    if matched := _FEWER.fullmatch(name):
        return Edges(_plural(matched[2]), None, Fraction(int(matched[1]) - 1))
    ages = age_range(name)
    if ages is None or ages == ALL:
        return None
    return Edges("years", Fraction(ages[0]), None if ages[1] == EVER else Fraction(ages[1] + 1))


def _money(name: str) -> Edges | None:
    if matched := _MONEY_RANGE.fullmatch(name):
        return Edges("money", _down(_number(matched[1])), _up(_number(matched[2])))
    if matched := _LESS.fullmatch(name):
        return Edges("money", None, _up(_number(matched[1] or matched[2])))
    if matched := _MORE.fullmatch(name):
        return Edges("money", _down(_number(matched[1])), None)
    return None


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _up(number: int) -> Fraction:
    """19,999 and some cents are below 20,000."""
    return Fraction(number + 1 if number % 10 == 9 else number)


def _down(number: int) -> Fraction:
    """10,001 stands for more than 10,000."""
    return Fraction(number - 1 if number % 10 == 1 else number)


def _plural(word: str) -> str:
    return {"person": "persons", "room": "rooms", "child": "children", "bedroom": "bedrooms"}.get(word, word)


def finest(lines: Sequence[tuple[str, str]], of: str) -> tuple[Group, ...]:
    """Return the smallest groups that follow one upon the other without a gap, from the lowest to the highest, or none.

    >>> labels = ["Total", "0 to 14 years", "0 to 4 years", "5 to 14 years", "15 years and over"]
    >>> [group.count for group in finest([(label, label) for label in labels], "years")]
    ['0 to 4 years', '5 to 14 years', '15 years and over']
    """
    edged = [(key, edges) for key, label in lines if (edges := edges_of(label)) is not None and edges.of == of]
    whole_numbers = of not in ("years", "money")  # where a group ends with 4, the next begins with 5

    def start(edges: Edges) -> Fraction:
        return Fraction(-1) if edges.low is None else edges.low

    lowest = min((start(edges) for _, edges in edged), default=None)
    best: dict[Fraction | None, tuple[Group, ...]] = {None: ()}
    # From the top down; of several that begin alike the narrowest comes last, and stays.
    order = sorted(edged, key=lambda group: (start(group[1]), group[1].high is None, group[1].high or 0), reverse=True)
    for key, edges in order:
        after = None if edges.high is None else edges.high + whole_numbers
        if after in best:
            best[start(edges)] = (Group(key, edges.low, edges.high), *best[after])
    groups = best.get(lowest, ()) if lowest is not None else ()
    return groups if len(groups) > 1 else ()
