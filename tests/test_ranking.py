"""The one order of findings: by kind, size, probability, and the people behind them."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from unround.audits.claims import KINDS, ClaimKind
from unround.audits.findings import RANK, SIZES, SMALL_FIRST, ranked, size_class

CLAIMS = st.lists(
    st.tuples(
        st.sampled_from([ClaimKind.PROVED, ClaimKind.CONDITIONAL, ClaimKind.LIKELY]),
        st.integers(0, 50) | st.integers(0, 40_000_000),
        st.floats(0, 1),
    ),
    max_size=30,
)


def frame(claims: list[tuple[ClaimKind, int, float]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "kind": pl.Series([KINDS[kind] for kind, _, _ in claims], dtype=pl.String),
            "value": pl.Series([value for _, value, _ in claims], dtype=pl.Int32),
            "probability_low": pl.Series([low for _, _, low in claims], dtype=pl.Float64),
            "place": pl.Series(range(len(claims)), dtype=pl.Int64),
        }
    )


def test_every_step_of_the_order_decides_before_the_next() -> None:
    wanted = [
        (ClaimKind.PROVED, 2, 1.0),
        (ClaimKind.PROVED, 3, 1.0),
        (ClaimKind.PROVED, 9, 1.0),
        (ClaimKind.PROVED, 12, 1.0),
        (ClaimKind.PROVED, 0, 1.0),
        (ClaimKind.CONDITIONAL, 1, 1.0),
        (ClaimKind.LIKELY, 2, 0.9),  # surer than the next, though of more people
        (ClaimKind.LIKELY, 1, 0.7),
        (ClaimKind.LIKELY, 2, 0.7),
        (ClaimKind.LIKELY, 5, 0.999),
        (ClaimKind.LIKELY, 5000, 0.999),
        (ClaimKind.LIKELY, 0, 0.9999),
        (ClaimKind.LIKELY, 0, 0.8),
    ]
    shuffled = [wanted[at] for at in np.random.default_rng(3).permutation(len(wanted))]
    ranks = ranked(frame(shuffled))
    assert list(zip(ranks["kind"], ranks["value"], ranks["probability_low"], strict=True)) == [
        (KINDS[kind], value, low) for kind, value, low in wanted
    ]


@given(CLAIMS)
def test_claims_are_ranked_by_kind_size_doubt_and_people(claims: list[tuple[ClaimKind, int, float]]) -> None:
    def key(claim: tuple[ClaimKind, int, float]) -> tuple[int, int, int, int]:
        kind, value, low = claim
        return kind, int(size_class(value)), int(np.rint(10_000 * (1 - low))), min(value, (1 << 20) - 1)

    ranks = ranked(frame(claims))
    assert ranks["place"].to_list() == sorted(range(len(claims)), key=lambda at: key(claims[at]))
    assert (ranks[RANK].to_numpy() < 1 << 40).all()


def test_what_is_equal_keeps_its_place() -> None:
    alike = [(ClaimKind.LIKELY, 1, 0.8 + small) for small in (0, 1e-7, -1e-7, 2e-6)]
    assert ranked(frame(alike))["place"].to_list() == [0, 1, 2, 3]


def test_classes_of_counts() -> None:
    assert [SMALL_FIRST[at] for at in size_class([1, 2, 3, 9, 10, 0])] == ["1-2", "1-2", "3-9", "3-9", "10+", "0"]
    assert sorted(SMALL_FIRST) == sorted(name for _, name in SIZES)
