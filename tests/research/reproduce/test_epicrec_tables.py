"""Rows of the evaluation of profile perturbation."""

from discreet.research.reproduce.epicrec_tables import losses, row
from discreet.research.reproduce.epicrec_trials import Fold, FoldTotals


def test_a_row_is_made_of_totals() -> None:
    totals = FoldTotals(Fold("synthetic", None, 0, 2, 1, {}))
    totals.add(("raw", "raw", 0.0), 0, people=2, ratings=4, error=2.0, ndcg=1.0)
    key = ("single", "ours", 0.5)
    totals.add(key, 0, people=2, ratings=4, error=3.0, ndcg=0.5, aggregate=7.0, seconds=0.2)
    assert losses(totals.by_method, key).tolist() == [0.5]
    assert row("d", totals.by_method, key) == {
        "dataset": "d",
        "system": "single",
        "method": "ours",
        "epsilon": 0.5,
        "aggregate_mae": 3.5,
        "mae_loss": 0.5,
        "ndcg10": 0.25,
        "seconds": 0.1,
    }
