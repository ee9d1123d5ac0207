"""Splitting keys into tokens: the usual notations, and what must hold for any text."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import random
import string
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.key_notations import NOTATIONS, SortOrder, TokenKind
from harness.model.key_tokens import tokens_of

_CHANCE = random.Random(1)
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_HEX = "0123456789abcdef"
TIMES = [dt.datetime(2023, 1, 1) + n * dt.timedelta(hours=17, seconds=37) for n in range(120)]
GUIDS = [str(uuid.UUID(int=_CHANCE.getrandbits(128), version=4)) for _ in TIMES]
WORDS = ["my", "first", "post", "hello", "table", "storage", "x2"]


def ticks(at: dt.datetime) -> int:
    return (at - dt.datetime(1, 1, 1)) // dt.timedelta(microseconds=1) * 10


def ms(at: dt.datetime) -> int:
    return (at - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)


def ulid(at: dt.datetime) -> str:
    digits = [_CROCKFORD[ms(at) >> shift & 31] for shift in range(45, -1, -5)]
    return "".join([*digits, *_CHANCE.choices(_CROCKFORD, k=16)])


def guid_7(at: dt.datetime) -> str:
    return str(uuid.UUID(int=ms(at) << 80 | 7 << 76 | 2 << 62 | _CHANCE.getrandbits(62)))


def slug() -> str:
    return "-".join(_CHANCE.choices(WORDS, k=_CHANCE.randint(1, 7)))


def sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


Made = Callable[[int, dt.datetime], str]
FORMATS: list[tuple[Made, str, str]] = [
    (lambda n, t: f"{t:%Y-%m-%d}", "{yyyy-MM-dd}", "ascending"),
    (lambda n, t: f"{t:%Y.%m.%d}", "{yyyy.MM.dd}", "ascending"),
    (lambda n, t: f"{t:%Y_%m_%d}", "{yyyy_MM_dd}", "ascending"),
    (lambda n, t: f"{t:%Y%m%d}", "{yyyyMMdd}", "ascending"),
    (lambda n, t: f"{t:%Y-%m}", "{yyyy-MM}", "ascending"),
    (lambda n, t: f"{t:%Y%m}", "{yyyyMM}", "ascending"),
    (lambda n, t: f"{2001 + n % 25}", "{yyyy}", "ascending"),
    (lambda n, t: f"{t:%Y-W%V}", "{yyyy-Www}", "ascending"),
    (lambda n, t: f"{t.year}Q{(t.month + 2) // 3}", "{yyyyQq}", "ascending"),
    (lambda n, t: f"{t:%Y-%m-%d-%H}", "{yyyy-MM-dd-HH}", "ascending"),
    (lambda n, t: f"{t:%Y%m%d%H}", "{yyyyMMddHH}", "ascending"),
    (lambda n, t: f"{t:%Y%m%d%H%M%S}", "{yyyyMMddHHmmss}", "ascending"),
    (lambda n, t: f"{t:%Y%m%d%H%M%S}{n:03}", "{yyyyMMddHHmmssfff}", "ascending"),
    (lambda n, t: f"log{t:%Y-%m-%d}", "log{yyyy-MM-dd}", "ascending"),
    (lambda n, t: f"D{t:%Y%m%d}", "D{yyyyMMdd}", "ascending"),
    (lambda n, t: f"{t:%d-%m-%Y}", "{dd-MM-yyyy}", "does not follow the value"),
    (lambda n, t: f"{t:%d.%m.%Y}", "{dd.MM.yyyy}", "does not follow the value"),
    (lambda n, t: f"{t:%m-%d-%Y}", "{MM-dd-yyyy}", "does not follow the value"),
    (
        lambda n, t: f"{n % 12 + 1:02}-{n // 12 + 1:02}-2024",
        "{dd-MM-yyyy or MM-dd-yyyy}",
        "does not follow the value",
    ),
    (lambda n, t: f"{t:%d%m%Y}", "{ddMMyyyy}", "does not follow the value"),
    (lambda n, t: f"{t:%m%d%Y}", "{MMddyyyy}", "does not follow the value"),
    (lambda n, t: f"{t.day}-{t.month}-{t.year}", "{d-M-yyyy}", "does not follow the value"),
    (lambda n, t: f"{t.year}-{t.month}-{t.day}", "{yyyy-M-d}", "does not follow the value"),
    (lambda n, t: f"{t:%m-%Y}", "{MM-yyyy}", "does not follow the value"),
    (lambda n, t: f"{t:%d-%b-%Y}", "{dd-MMM-yyyy}", "does not follow the value"),
    (lambda n, t: f"{t.isoformat()}Z", "{ISO date and time}", "ascending"),
    (lambda n, t: f"{t.isoformat()}.{n:03}+00:00", "{ISO date and time}", "ascending"),
    (lambda n, t: f"{t:%Y-%m-%dT%H-%M-%S}", "{ISO date and time}", "ascending"),
    (lambda n, t: f"{t:%Y%m%dT%H%M%SZ}", "{yyyyMMddTHHmmss}", "ascending"),
    (lambda n, t: f"{ms(t) // 1000}", "{seconds since 1970}", "ascending"),
    (lambda n, t: f"{ms(t)}", "{milliseconds since 1970}", "ascending"),
    (lambda n, t: f"e-{ms(t)}", "e-{milliseconds since 1970}", "ascending"),
    (lambda n, t: f"{ticks(t)}", "{.NET ticks}", "ascending"),
    (lambda n, t: f"{ticks(t):019}", "{.NET ticks}", "ascending"),
    (lambda n, t: f"t{ticks(t):019}", "t{.NET ticks}", "ascending"),
    (lambda n, t: f"{3155378975999999999 - ticks(t)}", "{inverted .NET ticks}", "descending"),
    (
        lambda n, t: f"log_{3155378975999999999 - ticks(t)}_{n:03}",
        "log_{inverted .NET ticks}_{3 digits, padded}",
        "descending",
    ),
    (lambda n, t: f"{2**63 - 1 - ms(t)}", "{2^63 - 1 - milliseconds}", "descending"),
    (lambda n, t: f"{9999999999999 - ms(t)}", "{inverted milliseconds}", "descending"),
    (lambda n, t: GUIDS[n], "{GUID}", "random"),
    (lambda n, t: f"{{{GUIDS[n].upper()}}}", "{{GUID}}", "random"),
    (lambda n, t: f"user_{GUIDS[n]}", "user_{GUID}", "random"),
    (lambda n, t: GUIDS[n].replace("-", ""), "{GUID or MD5, 32 hex digits}", "random"),
    (
        lambda n, t: "device" + GUIDS[n].replace("-", ""),
        "device{GUID or MD5, 32 hex digits}",
        "random",
    ),
    (lambda n, t: guid_7(t), "{GUID, version 7}", "ascending"),
    (lambda n, t: ulid(t), "{ULID}", "ascending"),
    (lambda n, t: ulid(t).lower(), "{ULID}", "ascending"),
    (lambda n, t: f"evt_{ulid(t)}", "evt_{ULID}", "ascending"),
    (
        lambda n, t: f"{ms(t) // 1000:08x}" + "".join(_CHANCE.choices(_HEX, k=16)),
        "{object id, 24 hex digits}",
        "ascending",
    ),
    (lambda n, t: sha1(str(n)), "{40 hex digits}", "random"),
    (lambda n, t: sha1(str(n))[:8], "{8 hex digits}", "random"),
    (lambda n, t: f"file-{sha1(str(n))[:16]}", "file-{16 hex digits}", "random"),
    (
        lambda n, t: f"{sha1(str(n))[:3]}-order{n:05}",
        "{3 hex digits}-order{5 digits, padded}",
        "random",
    ),
    (
        lambda n, t: base64.urlsafe_b64encode(uuid.UUID(GUIDS[n]).bytes).decode()[:22],
        "{22 characters}",
        "random",
    ),
    (
        lambda n, t: "".join(_CHANCE.choices(string.ascii_letters + string.digits, k=12)),
        "{12 characters}",
        "random",
    ),
    (lambda n, t: f"customer-{n:06}", "customer-{6 digits, padded}", "ascending"),
    (lambda n, t: f"race{n}__Full", "race{1 to 3 digits}__Full", "does not follow the value"),
    (lambda n, t: f"user{n}@example.com", "user{1 to 3 digits}@example.com", "does not follow"),
    (lambda n, t: f"c{n % 7}_{t:%Y-%m}", "c{1 digit}_{yyyy-MM}", "ascending"),
    (lambda n, t: f"{WORDS[n % 6]}_{t:%Y}", "{text}_{yyyy}", "alphabetical"),
    (lambda n, t: f"{t:%Y-%m-%d}-{slug()}", "{yyyy-MM-dd}-{text}", "ascending"),
    (lambda n, t: f"{slug()}_{t:%Y-%m-%d}", "{text}_{yyyy-MM-dd}", "alphabetical"),
    (lambda n, t: f"1{n:09}"[::-1], "{10 digits, padded}", "ascending"),
    (lambda n, t: "tenant-a", "{text}-{text}", "alphabetical"),
]


@pytest.mark.parametrize(("made", "template", "order"), FORMATS, ids=[row[1] for row in FORMATS])
def test_usual_formats(made: Made, template: str, order: str) -> None:
    """Keys of each format are told by their template, and by the order of their first part."""
    shape = tokens_of([made(n, at) for n, at in enumerate(TIMES)])
    assert shape.template == template
    assert shape.leading is not None
    assert shape.leading.order.startswith(order)


def test_other_values_do_not_spoil_a_format() -> None:
    """Up to a tenth of the keys may be anything else."""
    shape = tokens_of([*(f"{at:%Y-%m-%d}" for at in TIMES), "none", "", "99999999"])
    assert shape.template == "{yyyy-MM-dd}"
    assert shape.share == pytest.approx(1 - 3 / shape.keys)


def test_rows_weigh_and_not_keys() -> None:
    """Hundreds of odd keys, each of one row, hide no layout that thousands of rows have."""
    odd = {f"a{n % 7}-{n}-x-{n * n}": 1.0 for n in range(400)}
    shape = tokens_of({**odd, **{f"log-{at:%Y-%m-%d}": 60.0 for at in TIMES}})
    assert shape.template == "log-{yyyy-MM-dd}"


LEADING = {
    "ten digits are a time or a number": ([f"15{n * 7919 % 10**8:08}" for n in range(60)], True),
    "a year may be anything": ([f"car-{1985 + n}" for n in range(40)], True),
    "no row was written in 1980": ([f"1980-05-{n:02}" for n in range(1, 29)], True),
    "one month may be a number": (["202405"], True),
    "a year of months": ([f"2024{n:02}" for n in range(1, 13)], False),
    "the order of rows tells times": (
        [f"{'cab'[n % 3]}-{1714521600 + 60 * n}" for n in range(60)],
        False,
    ),
    "the order of keys does not": (
        sorted(f"{'cab'[n % 3]}-{1714521600 + 60 * n}" for n in range(60)),
        True,
    ),
}


@pytest.mark.parametrize(("keys", "doubtful"), LEADING.values(), ids=LEADING)
def test_doubtful_times(keys: list[str], doubtful: bool) -> None:
    """A reading as a time is a fact only with evidence."""
    (token,) = (token for token in tokens_of(keys).tokens if token.timed)
    assert token.doubtful == doubtful


COUNTERS = {
    "padded": [f"{7 * n:08x}" for n in range(300)],
    "dense": [f"{0xA1F0 + n:x}" for n in range(200)],
}


@pytest.mark.parametrize("keys", COUNTERS.values(), ids=COUNTERS)
def test_hexadecimal_counters_are_no_hashes(keys: list[str]) -> None:
    """Numbers without gaps, or with leading zeros, ascend."""
    leading = tokens_of(keys).leading
    assert leading is not None
    assert (leading.kind, leading.order) == (TokenKind.NUMBER, SortOrder.LATER)
    assert leading.span == int(keys[-1], 16) - int(keys[0], 16) + 1


def test_several_layouts() -> None:
    """Layouts that many keys have are told apart, the most frequent one first."""
    keys = [f"ORDER#{n:04}" for n in range(30)] + [f"PROFILE{n:04}" for n in range(20)]
    shape = tokens_of(keys)
    assert shape.template == "ORDER#{4 digits, padded}"
    assert [other.template for other in shape.others] == ["PROFILE{4 digits, padded}"]


def test_a_key_is_split() -> None:
    """Also one that was not looked at; a key of another layout is not."""
    shape = tokens_of([f"order-{at:%Y-%m-%d}_{n:03}" for n, at in enumerate(TIMES)])
    assert shape.split("order-2031-12-24_999") == ("order-", "2031-12-24", "_", "999")
    assert shape.split("order-31-12-2024_999") is None


_PARTS = st.sampled_from(
    (
        *("2024-05-01", "20240501", "01-05-2024", "31.12.2023", "2024-05", "1714521600", "race"),
        *("9", "10", "007", "-", "_", "__", "{", "é", "3f2504e04f8911d39a0c0305e82c3301", "٣"),
        *("638500000000000000", "2024-05-01T10:00:00Z", "2024-05-01T10:00:00.5Z", "W18", "\n"),
        "\ud800",
    )
)
_KEYS = st.lists(
    st.lists(_PARTS, max_size=6).map("".join) | st.text(max_size=20), max_size=12, unique=True
)


@given(_KEYS)
def test_tokens_make_up_the_key(keys: list[str]) -> None:
    """The texts of the tokens of any key are the key, and all matching keys have them."""
    shape = tokens_of(keys)
    split = [texts for key in keys if (texts := shape.split(key)) is not None]
    assert {"".join(texts) for texts in split} <= {*keys}
    assert len(split) >= shape.share * shape.keys - 0.01
    assert all(len(texts) == len(shape.tokens) for texts in split)
    assert shape.share + sum(other.share for other in shape.others) <= 1.001


_FORM_TEXTS = st.sampled_from(NOTATIONS).flatmap(
    lambda form: st.lists(
        st.from_regex(form.pattern, fullmatch=True).filter(form.matches),
        min_size=2,
        max_size=6,
        unique=True,
    )
)


@given(_FORM_TEXTS)
def test_an_order_is_that_of_the_values(keys: list[str]) -> None:
    """Where times are said to ascend or descend, their texts sort so."""
    shape = tokens_of(keys)
    for token in (token for token in shape.tokens if token.timed and shape.share == 1):
        form = next((form for form in NOTATIONS if form.name == token.form), None)
        if form is None or form.read is None:
            continue
        texts = sorted(key for key in keys if form.matches(key))
        values = [form.value(text) or 0 for text in texts]
        if token.order is SortOrder.LATER:
            assert values == sorted(values)
        elif token.order is SortOrder.EARLIER:
            assert values == sorted(values, reverse=True)


@given(st.lists(st.integers(0, 10**12).map(str), min_size=2, max_size=20, unique=True))
def test_numbers_sort_as_said(digits: list[str]) -> None:
    """Numbers ascend where all have one width, and only there."""
    tokens = [token for token in tokens_of(digits).tokens if token.kind is TokenKind.NUMBER]
    for token in tokens:
        ascend = token.order is SortOrder.LATER
        assert ascend == (len({len(text) for text in digits}) == 1)
        if token.wrong is not None:
            first, second = token.wrong
            assert first < second
            assert int(first) > int(second)


def test_every_form_names_texts_of_its_own() -> None:
    """No two forms are named alike but for the case of a ULID."""
    names = [form.name for form in NOTATIONS if form.name != "ULID"]
    assert len(names) == len(set(names))


def test_long_keys() -> None:
    """Hundreds of separators become one text, and are not taken apart."""
    shape = tokens_of("-".join(map(str, range(n, n + 500))) for n in range(100, 110))
    assert shape.share == 1
    assert len(shape.tokens) < 50
