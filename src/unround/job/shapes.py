"""What the files of an audit say, as `small_files.misfit` reads it: whoever opens a folder relies on it, nobody asks again.

More may be there. What is missing, or of another kind, is damage, whatever the hashes say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unround.checks.families import CONTRADICTS, DEPARTS, FITS
from unround.score.summary import AREA_SIZES, CLAIMS, REASONS_TO_HOLD, SIZES
from unround.small_files import Shape

if TYPE_CHECKING:
    import polars as pl

_BY_KIND: Shape = dict.fromkeys(CLAIMS, int)
_HELD: Shape = {"conditional": int, "likely": int}
_SHARES: Shape = {"stated": (float, None), "right": (float, None)}
_EXPECTED: Shape = {"groups": int, "proved": int, "proved_expected": float, "strong": int, "strong_expected": float}
_ROUNDING: Shape = {"model": str, "constant": (float, None), "error": (float, None), "p_value": (float, None), "why": str}
_SCORED: Shape = {"claims": int, "stated": float, "right": float, "standard_error": float, "overstated": bool}

_CHECK: Shape = {
    "families": [
        {
            "family": str,
            "sums": int,
            "observed": {str: int},
            "expected": {str: float},
            "p_value": (float, None),
            "tail_ratio": (float, None),
            "distance": (float, None),
            "impossible": int,
            "otherwise": str,
            "verdict": {FITS, DEPARTS, CONTRADICTS},
            "note": str,
            "by_size": [{"least": int, "sums": int, "shares": {str: float}, "tail_ratio": (float, None)}, ...],
            "clash": str,
            "refuted": bool,
            "basis": [str, ...],
            "table": (str, None),
            "rounding": (_ROUNDING, None),
            "by_sum": [{"total": str, "sums": int, **_ROUNDING}, ...],
        },
        ...,
    ],
    "verdict": str,
    "basis?": [str, ...],
    "untested": [{"family": str, "sums": int, "note": str}, ...],
    "mechanism": {
        "tables": [
            {"table": str, "columns": int, "mechanism": (str, None), "declared": bool, "basis": str, "why": str},
            ...,
        ],
        "repeats": [{"columns": [str, ...], "alike": (bool, None), "why": str}, ...],
        "round_up": [{"exact": str, "rounded": str, "by_remainder": {str: dict}, "p_value": (float, None)}, ...],
        "together": [dict, ...],
    },
    "tables": {str: _ROUNDING},
    "repeated": [
        {"columns": [str, ...], "model": str, "differences": [float, ...], "errors": [float, ...], "areas": int, "why": str},
        ...,
    ],
    "figures": [dict, ...],
    "areas": int,
}

_SELF_CHECK: Shape = {
    "cells": int,
    "rms_z": (float, None),
    "log_score": {str: float},
    "calibration": [{"low": float, "high": float, "predictions": int, "stated": float, "observed": float}, ...],
    "worst_columns": [
        {"column": str, "label": str, "predictions": int, "zeros_predicted": float, "zeros_published": int, "z": float},
        ...,
    ],
    "tables": [{"table": str, "columns": int, "cells": int, "rms_z": (float, None), "verdict": str, "why": str}, ...],
    "withheld": int,
}

_TRUTH: Shape = {
    **dict.fromkeys(("areas", "columns", "outside_bounds", "cells"), int),
    "checked": _BY_KIND,
    "wrong": _BY_KIND,
    "proved_wrong": [{"cell": str, "value": int, "true": int}, ...],
    "calibration": {str: [{"from": float, "to": float, "claims": int, **_SHARES}, ...]},
    "claims_by_value": [{"value": str, **_SCORED, "bands": [{"from": float, "to": float, **_SCORED}, ...]}, ...],
    "by_part": {str: {key: {"cells": int, **_SHARES} for key in ("all", "likely", "findings")}},
    "by_method": {str: {key: {"cells": int, **_SHARES} for key in ("all", "likely", "findings")}},
    "mean_error": (float, None),
    "root_mean_square_error": (float, None),
    "assumption_failed": (str, None),
}

_NESTED_LEVEL: Shape = {
    **dict.fromkeys(("child", "parent", "by", "why"), str),
    **dict.fromkeys(("parents", "children", "columns", "linked", "used"), int),
    "children_of_a_parent": {str: int},
    "alike": (bool, None),
    "rejected": {str: int},
}

_FIGURE: Shape = {
    **dict.fromkeys(("column", "label", "kind"), str),
    "numerator": (str, None),
    "universe": str,
    "groups": int,
    "in_probabilities": bool,
}

SUMMARY: dict[str, Any] = {
    **dict.fromkeys(("unround", "command", "source", "format"), str),
    "product": (str, None),
    **dict.fromkeys(("areas", "areas_hidden", "cells", "cells_published", "sums"), int),
    **_BY_KIND,
    "conditions": {"number": int, "most_claims": [{"condition": str, "claims": int}, ...]},
    **dict.fromkeys(("likely_without_sums", "more_likely_on_average", "more_likely_at_highest_found"), int),
    "held_back": _HELD,
    "held_back_because": {why.label: _HELD for why in REASONS_TO_HOLD},
    "hidden": dict.fromkeys(("counts", "with_one_value", "unbounded", "not_settled"), int),
    "suspect": {"areas": int, "sums": int, "level": float, "chance_below": float},
    "contradictions": int,
    "contradictions_by_kind": {str: int},
    "by_block": {str: _BY_KIND},
    "by_area_size": {name: {"areas": int, "cells": int, "cells_published": int, **_BY_KIND} for _, name in AREA_SIZES},
    "by_route": {str: _BY_KIND},
    "sensitive_claims": {
        "by_value": {name: _BY_KIND for _, name in SIZES},
        "zeros_proved": int,
        "parts_proved_to_be_their_total": int,
    },
    **dict.fromkeys(("sums_left_out_of_probabilities", "areas_not_weighed", "areas_where_chains_disagree"), int),
    "estimated": {"counts": int, "mean_error_in_points": (float, None)},
    "cells_judged_singly": int,
    "claims_because_of_figures": _BY_KIND,
    "linked": {
        "areas_by_method": {str: int},
        "likely_by_method": {str: int},
        "families_not_linked": {str: int},
        "claims_that_need_other_areas": _BY_KIND,
        "levels": [_NESTED_LEVEL, ...],
        "methods": [{"code": int, "name": str, "sentence": str, "mean": (float, None), "worst": (float, None)}, ...],
    },
    "chance": [{"family": str, "parts": int, "exact_total": bool, "base": int, **_EXPECTED}, ...],
    "chance_by_block": {str: _EXPECTED},
    "check": (_CHECK, None),
    "structure": {
        **dict.fromkeys(("columns", "audited", "sums_kept", "sums_rejected", "sums_added_up_afterwards"), int),
        **dict.fromkeys(("sums_for_bounds_only", "repeats"), int),
        "multiway_tables": [{"shape": [int, ...], "cells": int, "sums": int}, ...],
    },
    "threshold": float,
    "prior": str,
    "prior_in_words": str,
    "priors": {"variants": [str, ...], "near": float},
    "population": str,
    "doubtful": bool,
    "figures": str,
    "figures_used": [_FIGURE, ...],
    "mechanisms": {str: str},
    "left_out": {str: int},
    "notes": [str, ...],
    "unsettled": [{"what": str, "why": str, "settle": str}, ...],
    "selfcheck?": _SELF_CHECK,
    "holding": {"conditional": bool, "refuted": [int, ...], "refuted_tables": [str, ...], "suspect_below": float},
    "keys": {
        "rounding": str,
        "tables": [{"table": str, "constant": (float, None), "error": (float, None), "why": str}, ...],
        "repeats": [{"columns": [str, ...], "constants": [float, ...], "errors": [float, ...]}, ...],
        "columns_withheld": int,
    },
    "zeros_not_listed": int,
    "listed": {"claims": int, "in_csv": int},
    "truth?": _TRUTH,
    "files": {str: str},
    "seal": str,
}

RUN: Shape = {
    "unround": str,
    "began": str,
    "seconds": {"total": float, str: float},
    "blocks": int,
    "blocks_done_before": int,
    "started_anew": (str, None),
    "cluster": (str, None),
    "machine": {"system": str, "processors": int, "python": str},
}


def model(told: Any) -> Shape:
    """Return what `model/model.json` says, where cells and texts are referred to by their places in its own lists."""
    try:
        cell, text = range(len(told["columns"])), range(len(told["conditions"]["texts"]))
        axes, sums = len(told["axes"]), len(told["equations"])
    except (LookupError, TypeError):
        cell, text, axes, sums = range(0), range(0), 0, 0  # which it does not fit
    column = {
        **dict.fromkeys(("key", "label", "block", "mechanism", "at_most"), str),
        "codes": [str] * axes,
        "depth": int,
        "adjusted": int,
    }
    return {
        "axes": [str, ...],
        "areas": [str, ...],
        "alias": {str: str},
        "columns": [column, ...],
        "equations": [[cell, [cell, ...]], ...],
        "origins": [str] * sums,
        "doubtful": [bool] * sums,
        "fixed": [cell, ...],
        "figures": [dict, ...],
        "conditions": {"texts": [str, ...], "cells": [text] * len(cell), "sums": [text] * sums, "areas": str},
    }


def columns_of(name: str, told: Mapping[str, Any], areas: pl.Schema) -> Mapping[str, pl.DataType]:
    """Return the columns of one of the audit's tables that others rely on; all but those in `EMPTY` are full."""
    import polars as pl

    axes: dict[str, pl.DataType] = {axis: areas.get(axis, pl.Null()) for axis in told["areas"]}
    text, whole, real = pl.String(), pl.Int32(), pl.Float64()
    if name == "model/areas.parquet":
        known = dict.fromkeys(("region_name", "level", "parent", "code"), text) | {"adjustable": pl.Boolean()}
        return axes | {column: kind for column, kind in known.items() if column in areas}
    if name == "model/published.parquet":
        figures = {"figures": pl.Array(pl.Int64, len(told["figures"]))} if told["figures"] else {}
        return axes | {"counts": pl.Array(pl.Int32, len(told["columns"])), "zeros_not_listed": whole} | figures
    if name == "findings.parquet":
        texts = dict.fromkeys((*told["axes"], "kind", "route", "assumptions", "method"), text)
        numbers = dict.fromkeys(("published", "low", "high", "value", "depth"), whole)
        chances = ("probability_low", "probability", "probability_high", "due_to_sums")
        return axes | texts | numbers | dict.fromkeys(chances, real)
    own = {
        "contradictions.csv": ("kind", "sums", "cells", "clash"),
        "suspects.csv": ("sum", "published", "parts_add_up_to", "parts", "chance_at_most"),
    }
    return dict.fromkeys(own.get(name, ()), text)  # the names of axes are made safe for spreadsheets there


EMPTY = (
    "region_name",
    "level",
    "parent",
    "code",
    "adjustable",
    "published",
    "high",
    "depth",
    "probability_low",
    "due_to_sums",
)
"""Columns in which something may be missing."""
