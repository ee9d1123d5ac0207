"""The first words of a comparison: one sentence, the names of the runs, and their settings."""

from __future__ import annotations

from harness.report.compare.comparison import SAME, compare, headline, settings_of
from harness.report.compare.differences import Subject
from harness.report.compare.outputs import comparison_json, comparison_markdown, side_by_side
from harness.report.compare.regressions import parse_regression
from harness.report.terminal.page import Page
from harness.report.web.compare_page import compare_page
from tests.support.records import altered, kept, run, subjects

RECORD = kept()


def test_all_runs_of_a_busy_machine_are_named() -> None:
    """In one sentence that can be read, and once where several figures are not judged."""
    busy = [
        run(1000, name="a", generator=altered(RECORD.generator, machine_busy_share=share))
        for share in (0.5, 0.2)
    ]
    machine = (
        "in A the machine was saturated in 50% of the seconds; "
        "in B the machine was saturated in 20% of the seconds"
    )
    compared = compare(subjects(*busy), [])
    assert headline(compared) == f"{SAME} Some figures were not judged, because {machine}."
    [said] = [one for one in compared.findings if one.startswith("Shown, not judged")]
    assert said.endswith(f" ({machine}).")


def test_names_are_given_or_tell_the_runs_apart() -> None:
    """By profile or by PartitionKey; letters where those are the same."""
    one, other = run(1, name="customer"), run(1, name="month")
    assert _names(subjects(one, other)) == ["customer", "month"]
    assert _names(subjects(one, one, names=("before", "after"))) == ["before", "after"]
    spread, single = (
        altered(one, profile={**one.profile, "keys": {"partition_key": key}})
        for key in ("{key}", "p0")
    )
    assert _names(subjects(spread, single)) == ["{key}", "p0"]
    assert _names(subjects(one, one)) == ["A", "B"]


def _names(of: list[Subject]) -> list[str]:
    return [one.name for one in of]


def test_settings_that_differ_are_listed() -> None:
    """Each with both values; of very many the first, and how many more."""
    one = run(1, name="a")
    keys = {**one.profile["keys"], "partition_key": "{key}", "rows_per_partition": 50}
    other = altered(one, profile={**one.profile, "seed": 2, "keys": keys})
    assert settings_of(compare(subjects(one, other), [])) == [
        "A and B: keys.partition_key: not set and {key}; keys.rows_per_partition: 1000 and 50"
    ]
    many = {**one.profile, **{f"setting{place}": place for place in range(11)}}
    [line] = settings_of(compare(subjects(one, altered(one, profile=many)), []))
    assert line.endswith("; 3 more settings")
    assert settings_of(compare(subjects(one, one), [])) == []


def test_every_output_begins_with_the_sentence_and_the_settings() -> None:
    """Terminal, Markdown, JSON and page; runs have the user's names wherever they are named."""
    of = subjects(run(1000, name="a"), run(2400, name="b"), names=("customer", "customer + month"))
    compared = compare(of, [parse_regression("entities_per_s < 95%")])
    sentence = "customer + month serves 2.4 times as much as customer before it throttles."
    terminal = side_by_side(compared, Page(width=120, colour=False, ascii_only=True))
    assert terminal.lstrip().startswith(sentence)
    assert "customer and customer + month: name: a and b" in terminal
    assert "Entities/s: customer + month (2,400) is better; customer has 1,000" in terminal
    assert "regressions of customer + month against customer" in terminal
    assert comparison_markdown(compared).splitlines()[2] == f"**{sentence}**"
    assert f'"headline": "{sentence}"' in comparison_json(compared)
    assert f"<h1>{sentence}</h1>" in compare_page(compared).replace("&#43;", "+")
