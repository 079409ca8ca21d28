"""What totals, sexes, areas, codes and counts are called, in the languages of many tables."""

from __future__ import annotations

import re
from collections.abc import Iterable


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split("|"))


TOTALS = _words(
    "total|totals|tot|tot.|all|everyone|everybody|both|both sexes|all sexes|all genders|all persons|total persons|persons|"
    "people|all people|all ages|total population|population|all categories|all groups|overall|sum|grand total|_t|t|"
    "insgesamt|gesamt|zusammen|alle|personen|bevölkerung|ensemble|total général|les deux sexes|tous|toutes|tous âges|"
    "todos|ambos sexos|total general|totale|tutti|totaal|i alt|ialt|totalt|yhteensä|ogółem|razem|celkem|összesen|"
    "σύνολο|всего|total stated"
)
"""Codes and names that stand for everybody, in lower case."""
_TOTAL = re.compile(r"(?:grand )?total\b.*|.*, total|.*\btotal$|insgesamt\b.*|gesamt\b.*")
_ALL = re.compile(r"all \w+(?: \w+)?")

MEN = _words(
    "men|man|male|males|men+|m|boys|männlich|maennlich|männer|maenner|mann|hommes|homme|masculin|h|hombres|hombre|"
    "maschi|maschio|uomini|mannen|mænd|menn|män|miehet|mężczyźni"
)
WOMEN = _words(
    "women|woman|female|females|women+|f|w|girls|weiblich|frauen|frau|femmes|femme|féminin|mujeres|mujer|femmine|"
    "femmina|donne|vrouwen|kvinder|kvinner|kvinnor|naiset|kobiety"
)
LETTERS = frozenset({"m", "f", "w", "h"})
"""Sexes of one letter: believed only if both are there."""

UNKNOWN = re.compile(
    r"_u|unk|unknown|not stated|not known|not specified|unspecified|no answer|unbekannt|ohne angabe|inconnue?|non déclaré|"
    r"desconocido|sconosciuto|onbekend|ukendt|age unknown|not elsewhere included"
)
"""Categories of those of whom nothing is known; they may or may not be part of a total."""

AREAS = _words(
    "region|regions|area|areas|geo|geography|district|districts|municipality|municipalities|county|counties|country|"
    "province|state|states|town|city|village|ward|commune|communes|gemeinde|gemeinden|kreis|bundesland|land|kommune|"
    "kanton|canton|département|departement|departamento|provincia|municipio|comune|regione|gemeente|provincie|place|"
    "location|territory|zone|tract|block|parish|borough|authority|lga|lsoa|msoa|oa|nuts|dguid|geouid|geoid|ref_area|sa1|sa2|"
    "neighbourhood|neighborhood|quartier|stadtteil|bezirk|lau|postcode|school|hospital|site"
)
SEXES = _words("sex|sexes|gender|geschlecht|sexe|genre|sexo|género|sesso|geslacht|køn|kjønn|kön|sukupuoli|płeć")
AGES = _words("age|ages|agegroup|age_group|alter|altersgruppe|âge|edad|età|leeftijd|alder|ålder|ikä|wiek|agegrp|agep")
TIMES = _words(
    "year|years|jahr|année|annee|año|anno|jaar|år|time|time_period|period|date|quarter|month|refper|reference_period|jahre|"
    "stichtag|zeit|censusyear|census_year"
)
CODES = _words(
    "code|codes|dguid|geouid|geoid|mnemonic|id|ids|key|nr|no|number_code|fips|ags|insee|istat|uid|geocode|schlüssel|plz|postcode|zip|#"
)
NAMES = _words("name|names|label|labels|title|description|bezeichnung|nom|libellé|nombre|nome|naam|navn|namn|nimi|desc")
VALUES = _words(
    "value|values|count|counts|n|obs_value|published|true|number|freq|frequency|persons|people|population|anzahl|wert|"
    "personen|effectif|effectifs|nombre|valeur|valor|valore|numero|aantal|antal|antall|obs|cases|observation"
)
"""What a column of counts is called."""

SDMX_VALUE, SDMX_STATUS = "OBS_VALUE", ("OBS_STATUS", "OBS_FLAG", "CONF_STATUS")
SDMX_OTHERS = frozenset(
    {
        "DATAFLOW", "STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "LAST UPDATE", "LAST_UPDATE", "DECIMALS",
        "UNIT_MULT", "UNIT_MULTIPLIER", "OBS_CONF", "OBS_COM", "COMMENT_OBS", "TITLE", "TIME_FORMAT", "COLLECTION",
        "SOURCE_AGENCY", "PRE_BREAK_VALUE", *SDMX_STATUS,
    }
)  # fmt: skip
"""Columns of SDMX-CSV that are no dimensions."""


def tokens(text: str) -> list[str]:
    """Return the words of a name, in lower case.

    Examples
    --------
    >>> tokens("Region_Name (2021)"), tokens("ageGroup")
    (['region', 'name', '2021'], ['age', 'group'])
    """
    apart = re.sub(r"(?<=[a-zà-ÿ])(?=[A-Z])", " ", text)
    return [word for word in re.split(r"[^\w+]+|_", apart.lower()) if word]


def about(name: str, words: Iterable[str]) -> bool:
    """Say whether the name of a column speaks of something: as a whole, or in one of its words."""
    known = set(words)
    return " ".join(name.lower().split()) in known or bool(known & set(tokens(name)))


def is_total(*texts: str, of_places: bool = True) -> bool:
    """Say whether a code, or what people read for it, stands for everybody.

    "All dwellings" is a total, unless codes may be the names of places: then it may be a village.

    Examples
    --------
    >>> is_total("_T"), is_total("Total - Age"), is_total("3", "Both sexes"), is_total("Totnes"), is_total("All Saints Road")
    (True, True, True, False, False)
    """
    for text in texts:
        bare = " ".join(text.lower().split()).strip(" .:*")
        if bare in TOTALS or _TOTAL.fullmatch(bare) or (not of_places and _ALL.fullmatch(bare)):
            return True
    return False


def sex_of(*texts: str) -> str | None:
    """Return "men" or "women" if that is what a code or name stands for.

    Examples
    --------
    >>> sex_of("Males"), sex_of("2", "weiblich"), sex_of("All")
    ('men', 'women', None)
    """
    for text in texts:
        bare = " ".join(text.lower().split()).strip(" .:*")
        if bare in MEN:
            return "men"
        if bare in WOMEN:
            return "women"
    return None


def is_unknown(*texts: str) -> bool:
    """Say whether a category is that of people of whom nothing is known."""
    return any(UNKNOWN.fullmatch(" ".join(text.lower().split())) for text in texts)
