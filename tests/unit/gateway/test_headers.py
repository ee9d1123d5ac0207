"""Header fields as they arrive, by name and as they are passed on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.headers import NOT_SENT_ON, SINGLE_HOP, Headers

NAMES = st.sampled_from(
    [b"Accept", b"accept", b"X-A", b"x-a", b"X-B", b"Host", b"Connection", b"Keep-Alive", b"Vary"]
)
VALUES = st.sampled_from([b"", b"1", b"keep-alive", b"X-A, close", b"x-b", b"a: b"])
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=8)


def values_of(fields: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """The values of all fields with a name, in order."""
    return [value for other, value in fields if other.lower() == name]


@given(FIELDS)
def test_fields_are_found_by_name_in_any_case(fields: list[tuple[bytes, bytes]]) -> None:
    """Repeated or not, the values of a name are joined by commas in their order."""
    headers = Headers(fields)
    for name in {name.lower() for name, _ in fields}:
        joined = b", ".join(values_of(fields, name)).decode()
        assert headers[name.decode().upper()] == headers.get(name.decode()) == joined
        assert name.decode() in headers
    assert len(headers) == len({name.lower() for name, _ in fields})
    assert "Missing" not in headers
    assert headers.get("Missing") is None


@given(FIELDS, st.sampled_from([SINGLE_HOP, NOT_SENT_ON]), st.booleans())
def test_a_proxy_passes_on_what_is_not_of_one_hop(
    fields: list[tuple[bytes, bytes]], unwanted: frozenset[bytes], trailer: bool
) -> None:
    """Left out are the given names and those in Connection; a repeated field changes no other."""
    named = b",".join(values_of(fields, b"connection")).lower().split(b",")
    left_out = unwanted | {name.strip() for name in named}
    headers = Headers(fields)
    if trailer:
        # A field behind the body arrives after the others were read.
        fields.append((b"X-Late", b"1"))
    expected = [name + b": " + value for name, value in fields if name.lower() not in left_out]
    assert headers.passed_on(unwanted) == expected
