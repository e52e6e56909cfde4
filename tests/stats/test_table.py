import numpy as np
import pytest
from stats_cases import alibi, causal, noisy

from posviz.errors import PosvizError
from posviz.stats import format_comparison, format_table, head_stats

ROWS = [stats.to_json() for stats in head_stats(alibi(np.array([0.5, 0.05, 0.25]), 64))]


def first_column(table: str) -> list[str]:
    return [line.split()[0] for line in table.splitlines()]


def test_a_table_has_a_line_per_head_and_aligned_numbers():
    lines = format_table(ROWS).splitlines()
    assert first_column("\n".join(lines)) == ["head", "1", "2", "3"]
    assert lines[1].endswith("linear m=0.5 R2=1.0000")
    ends = [line.index("linear") for line in lines[1:]]
    assert ends == [lines[0].index("fit")] * 3


@pytest.mark.parametrize(
    ("sort", "order"),
    [("reach", "231"), ("reach50", "231"), ("-reach", "132"), ("head", "123"), ("slope", "132"), ("ent", "231")],
)
def test_heads_are_ranked_by_any_number_or_the_beginning_of_its_name(sort: str, order: str):
    assert first_column(format_table(ROWS, sort=sort))[1:] == list(order)


def test_a_path_reaches_further_down():
    table = format_table(ROWS, ["head", "last.reach50", "fit.linear.slope"], sort="last.reach90")
    assert table.splitlines()[0].split() == ["head", "last.reach50", "slope"]
    assert first_column(table)[1:] == ["2", "3", "1"]


def test_heads_without_the_number_come_last():
    rows = [{"head": 1, "sink": None}, {"head": 2, "sink": 0.1}, {"head": 3, "sink": 0.4}]
    assert first_column(format_table(rows, ["head", "sink"], sort="sink"))[1:] == ["3", "2", "1"]
    assert format_table(rows, ["head", "sink"]).splitlines()[1].split() == ["1", "-"]


def test_several_layers_are_named():
    rows = [{**ROWS[0], "layer": 1}, {**ROWS[0], "layer": 2}]
    assert format_table(rows).splitlines()[0].split()[:2] == ["layer", "head"]


def test_shares_of_variance_are_shown_where_they_are_known():
    rows = [{**row, "content": 0.25, "position": 0.75} for row in ROWS]
    lines = format_table(rows).splitlines()
    assert lines[0].split()[-3:] == ["content", "position", "fit"]
    assert "0.250     0.750" in lines[1]


def test_uniformity_is_never_rounded_up_to_one():
    assert format_table([{"head": 1, "uniformity": 0.99998}], ["uniformity"]).splitlines()[1] == "    0.9999"
    assert format_table([{"head": 1, "uniformity": 1 - 1e-13}], ["uniformity"]).splitlines()[1] == "    1.0000"


def test_an_unknown_number_is_suggested():
    with pytest.raises(PosvizError, match=r"unknown number 'entropie'; did you mean 'entropy'\? known: .*reach50"):
        format_table(ROWS, sort="entropie")


def test_text_cannot_be_sorted_by():
    with pytest.raises(PosvizError, match="method is not a number; sort by one of: head, layer, min"):
        format_table(ROWS, sort="method")


def test_sources_stand_side_by_side():
    other = [stats.to_json() for stats in head_stats(causal(noisy(3, 64)))]
    lines = format_comparison([("alibi", ROWS), ("noise", other)], ["uniformity", "slope"]).splitlines()
    assert lines[0].split() == ["uniformity", "slope"]
    assert lines[1].split() == ["head", "alibi", "noise", "alibi", "noise"]
    assert lines[2].split()[:2] == ["1", "1.0000"]
    assert 0 < float(lines[2].split()[2]) < 0.2
    assert lines[2].split()[3] == "0.5"


def test_a_wide_comparison_goes_on_below():
    table = format_comparison([("a", ROWS), ("b", ROWS)], width=50)
    assert max(len(line) for line in table.splitlines()) <= 50
    assert first_column(table.replace("\n\n", "\n")).count("head") > 1


def test_different_heads_are_not_compared():
    with pytest.raises(PosvizError, match="heads differ: a has heads 1 to 3, b has heads 1, 2; expected the same"):
        format_comparison([("a", ROWS), ("b", ROWS[:2])])
