"""What every panel of the dashboard and every rule of Prometheus has to be like."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.generator.queries import ENTITIES
from harness.measure.counts.generator import BUSY_PERCENT
from harness.metrics.exposition import RunState
from harness.model.operation import Kind
from harness.model.services.service import PUBLISHED
from tests.support.metrics_page import WHOLE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards"
FILE = FOLDER / "partition-stress.json"
CONTENT: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
ROWS = [panel for panel in CONTENT["panels"] if panel["type"] == "row"]
PANELS = [panel for panel in CONTENT["panels"] if panel["type"] != "row"]
ANNOTATIONS: list[dict[str, Any]] = CONTENT["annotations"]["list"]
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "rules.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}

UNITS = {
    "none",
    "percent",
    "percentunit",
    "s",
    "short",
    "suffix: RU",
    "suffix: RU/s",
    "suffix: attempts/s",
    "suffix: entities/s",
    "suffix: operations/s",
    "suffix: transactions/s",
}
SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "info": ["_info"]}
SUFFIXES["summary"] = ["", "_sum", "_count"]
KNOWN = {
    family.name + suffix
    for family in RunState(lambda: WHOLE).collect()
    for suffix in SUFFIXES.get(family.type, [""])
}
"""Every series that the harness has."""

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
_SERIES = re.compile(r"\b(?:[a-z]\w*:)?aztables_\w+(?::\w+)?")
_COUNTED = re.compile(r"\baztables_\w+(?:_total|_bucket|_sum|_count)\b")


PANEL = pytest.mark.parametrize("panel", [pytest.param(one, id=one["title"]) for one in PANELS])
QUERY = pytest.mark.parametrize(
    "expr",
    [
        *(
            pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
            for panel in PANELS
            for target in panel["targets"]
        ),
        *(pytest.param(one["expr"], id=one["name"]) for one in ANNOTATIONS),
    ],
)


def panel_of(title: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = (panel for panel in PANELS if panel["title"] == title)
    return found


def test_generating_again_gives_the_same_bytes(tmp_path: Path) -> None:
    """What is committed is what the generator makes."""
    made = tmp_path / "made.json"
    done = subprocess.run(
        [sys.executable, "-m", "dashboards.generator", str(made)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert made.read_bytes() == FILE.read_bytes(), "run `make dashboards`"


@PANEL
def test_a_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    """Title, a description of a sentence or more, a unit, what an empty one means."""
    defaults = panel["fieldConfig"]["defaults"]
    assert len(panel["title"]) > 4
    assert len(panel["description"]) > 20
    assert panel["description"].endswith(".")
    assert defaults["unit"] in UNITS
    assert defaults["noValue"]


def test_titles_numbers_and_letters_are_used_once() -> None:
    """No two panels share a title or a number, no two queries of a panel a letter."""
    for values in (
        [panel["title"] for panel in PANELS],
        [panel["id"] for panel in CONTENT["panels"]],
        *([target["refId"] for target in panel["targets"]] for panel in PANELS),
    ):
        assert [value for value, times in Counter(values).items() if times > 1] == []


def test_panels_lie_side_by_side() -> None:
    """On the grid of 24 columns no panel lies on another, and rows span it."""
    taken: dict[tuple[int, int], str] = {}
    for panel in CONTENT["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for cell in itertools.product(
            range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        ):
            assert cell not in taken, f"{panel['title']} lies on {taken[cell]}"
            taken[cell] = panel["title"]
    assert {row["gridPos"]["w"] for row in ROWS} == {24}


@PANEL
def test_a_panel_asks_the_chosen_data_source(panel: dict[str, Any]) -> None:
    """Panel and queries go to the variable, never to a data source of one Grafana."""
    assert panel["datasource"] == DATASOURCE
    assert [target["datasource"] for target in panel["targets"]] == [DATASOURCE] * len(
        panel["targets"]
    )


def test_variables_and_annotations_ask_the_chosen_data_source() -> None:
    """They follow the variable as well, and nothing needs the import dialog."""
    variables = {variable["name"]: variable for variable in CONTENT["templating"]["list"]}
    assert list(variables) == ["datasource", "run", "partition"]
    assert variables["run"]["datasource"] == variables["partition"]["datasource"] == DATASOURCE
    assert {annotation["name"] for annotation in ANNOTATIONS} == {
        "Run started",
        "Measured window",
        "Verdict",
    }
    for annotation in ANNOTATIONS:
        assert annotation["datasource"] == DATASOURCE
        assert annotation["target"]["expr"] == annotation["expr"]
    assert "__inputs" not in CONTENT
    for variable in (variables["run"], variables["partition"]):
        assert set(_SERIES.findall(variable["query"])) <= KNOWN


@QUERY
def test_a_query_is_about_the_chosen_run(expr: str) -> None:
    """Every series in it is known, and is of the run alone."""
    names = _SERIES.findall(_STRINGS.sub('""', expr))
    assert names
    assert set(names) <= KNOWN
    assert len(names) == len(re.findall(r'\baztables_\w+\{run="\$run"[,}]', expr))


@QUERY
def test_a_counter_is_asked_for_its_rate(expr: str) -> None:
    """What counts stands in rate or increase, over `$__rate_interval` and nothing else."""
    bare = _STRINGS.sub('""', expr)
    rated = re.findall(
        r"\b(?:rate|increase)\((aztables_\w+)\{[^{}]*\}\[\$__rate_interval\]\)", bare
    )
    assert rated == _COUNTED.findall(bare)
    assert bare.count("[") == len(rated)


@QUERY
def test_a_query_does_not_pretend(expr: str) -> None:
    """Nothing is put where there is no series, and only variables that exist are used."""
    bare = _STRINGS.sub('""', expr)
    assert not re.search(r"\b(?:or|vector|absent)\b", bare)
    assert set(re.findall(r"\$\{?(\w+)", expr)) <= {"run", "partition", "__rate_interval"}


def test_targets_and_limits_are_lines() -> None:
    """2,000 and 20,000 entities/s, and a busy core, are drawn and in reach of the axis."""
    for title, at in (
        ("Entities/s per partition", PUBLISHED.partition),
        ("Entities/s of the account", PUBLISHED.account),
        ("Generator CPU", BUSY_PERCENT),
    ):
        defaults = panel_of(title)["fieldConfig"]["defaults"]
        assert [step["value"] for step in defaults["thresholds"]["steps"]] == [None, at]
        assert defaults["custom"]["thresholdsStyle"] == {"mode": "line"}
        assert defaults["custom"]["axisSoftMax"] > at


def test_statuses_are_kept_apart() -> None:
    """503, 500, 504 and 429 have a panel each, which asks for that status alone."""
    for status in (503, 500, 504, 429):
        (target,) = panel_of(f"{status} per partition")["targets"]
        assert re.findall(r'status="(\d+)"', target["expr"]) == [str(status)]


def test_heat_maps_are_made_of_what_they_need() -> None:
    """Latencies come as buckets by `le`, key ranges as a series each whose name is no number."""
    maps = [panel for panel in PANELS if panel["type"] == "heatmap"]
    forms = {panel["title"]: panel["targets"][0] for panel in maps}
    for title in ("Service latency", "Response latency"):
        assert (forms[title]["format"], forms[title]["legendFormat"]) == ("heatmap", "{{le}}")
    for title in ("Entities/s by key range", "Throttled attempts by key range"):
        assert forms[title]["format"] == "time_series"
        assert forms[title]["legendFormat"] == "from {{range}}"
        assert "sum by (range) (" in forms[title]["expr"]
    assert len(maps) == 4


@pytest.mark.parametrize("rule", [pytest.param(r, id=r.get("alert") or r["record"]) for r in RULES])
def test_a_rule_knows_its_series(rule: dict[str, Any]) -> None:
    """It asks for what the harness or another rule has, and rates what counts."""
    bare = _STRINGS.sub('""', rule["expr"])
    assert set(_SERIES.findall(bare)) <= KNOWN | RECORDED
    assert "vector(" not in bare
    if "record" in rule:
        rated = re.findall(r"\brate\((aztables_\w+)", bare)
        assert rated == _COUNTED.findall(bare)


def test_recorded_names_say_level_metric_operation() -> None:
    """The level is the labels that are left; a recorded rate says over how long."""
    for rule in RULES:
        if "record" in rule:
            level, _, operation = rule["record"].split(":")
            by = re.search(r"sum by \(([^)]*)\)", rule["expr"])
            assert by is not None
            assert level.split("_") == by[1].split(", ")
            assert operation.endswith("rate15s")


def test_the_rate_of_an_account_leaves_out_what_no_target_is_for() -> None:
    """By the operations, which folded partitions have too; dashboard and rules agree."""
    [rule] = [one for one in RULES if one.get("record") == "run:aztables_entities:rate15s"]
    left_out = "|".join(kind for kind in Kind if kind.untargeted)
    for expression in (rule["expr"], ENTITIES):
        assert f'op!~"{left_out}"' in expression


def test_an_alert_says_what_to_do() -> None:
    """Each of the five has a summary, what it means, and what to do about it."""
    assert set(ALERTS) == {
        "HotPartition",
        "PartitionThrottled",
        "AccountThrottled",
        "ClientLimited",
        "BudgetNearlySpent",
    }
    for alert in ALERTS.values():
        assert set(alert["annotations"]) == {"summary", "description", "action"}
        assert all(len(text) > 20 for text in alert["annotations"].values())
        assert alert["labels"]["severity"] in {"info", "warning", "critical"}
    assert ALERTS["HotPartition"]["for"] == "1m"
    assert f">= {BUSY_PERCENT:g}" in ALERTS["ClientLimited"]["expr"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "rules.yml"),
        ("check", "config", "prometheus.yml"),
        ("test", "rules", "rules_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_agrees(arguments: tuple[str, ...]) -> None:
    """Prometheus' own tool takes rules and configuration, and the rules pass their tests."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: `make test-deps` installs it")
    done = subprocess.run(
        [promtool, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout + done.stderr


def test_scrapes_are_as_often_as_rates_need() -> None:
    """Several scrapes fall into the 15 s of a recorded rate, and Grafana knows how often."""
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    seconds = int(config["global"]["scrape_interval"].removesuffix("s"))
    assert 4 * seconds <= 15
    sources = FOLDER / "provisioning" / "datasources" / "prometheus.yml"
    (source,) = yaml.safe_load(sources.read_text(encoding="utf-8"))["datasources"]
    assert source["jsonData"]["timeInterval"] == f"{seconds}s"
    assert source["type"] == "prometheus"
