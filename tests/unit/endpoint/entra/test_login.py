"""The token of a process: fetched, renewed, told of; with the time as an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import gevent
import pytest

from harness.endpoint.entra.login import Login, Logins
from harness.endpoint.entra.token import Identity, NoToken, Token
from harness.model.errors import SetupError
from harness.model.services.cosmos import COSMOS
from harness.model.services.storage import STORAGE

ME = Identity(kind="user", object_id="me", tenant="mine")


class Issuer:
    """Issues tokens of 100 s, or fails; counts how often it is asked."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.asked = 0
        self.problem = ""
        self.identity = ME
        self.takes: Callable[[], None] = lambda: None
        self.same = False
        self.life_s = 100.0

    def __call__(self) -> Token:
        self.asked += 1
        self.takes()
        if self.problem:
            raise NoToken(self.problem)
        return Token(
            value="same" if self.same else f"token{self.asked}",
            fetched_s=self.now_s,
            expires_s=self.now_s + self.life_s,
            identity=self.identity,
        )


@pytest.fixture
def issuer() -> Issuer:
    """An issuer at second 1000."""
    return Issuer()


@pytest.fixture
def told() -> list[str]:
    """What was told."""
    return []


@pytest.fixture
def login(issuer: Issuer, told: list[str]) -> Iterator[Login]:
    """A login with its first token, which is kept alive."""
    login = Login(issuer, tenant="configured", clock=lambda: issuer.now_s, look_every_s=0.005)
    login.sign_in()
    login.keep(told.append)
    yield login
    login.close()


def pass_time(issuer: Issuer, seconds: float) -> None:
    """Let time pass, and the background notice it."""
    issuer.now_s += seconds
    gevent.sleep(0.05)


def test_a_token_is_fetched_once() -> None:
    """Before the first token there is no header; a second sign-in asks for nothing."""
    issuer = Issuer()
    login = Login(issuer, tenant="configured", clock=lambda: issuer.now_s)
    assert (login.header, login.identity) == ("", Identity(tenant="configured"))
    with pytest.raises(NoToken):
        _ = login.token
    login.sign_in()
    login.sign_in()
    assert issuer.asked == 1
    assert login.header == login.authorization("GET", "", "", "") == "Bearer token1"
    assert login.described == "Entra ID (user, object id me, tenant mine)"
    issuer.now_s += 100
    login.sign_in()
    assert login.header == "Bearer token2"


def test_no_token_is_an_error() -> None:
    """Without a token the sign-in fails; so it does with one that has expired already."""
    issuer = Issuer()
    login = Login(issuer, clock=lambda: issuer.now_s)
    issuer.problem = "nobody is logged in"
    with pytest.raises(SetupError, match="nobody is logged in"):
        login.sign_in()
    issuer.problem, issuer.life_s = "", -3
    with pytest.raises(SetupError, match="clock"):
        login.sign_in()
    assert login.header == ""


def test_a_token_is_renewed_in_the_background(
    issuer: Issuer, login: Login, told: list[str]
) -> None:
    """Ahead of its end, silently, while requests go on with the old one."""
    pass_time(issuer, 59)
    assert login.header == "Bearer token1"
    pass_time(issuer, 2)
    assert login.header == "Bearer token2"
    pass_time(issuer, 61)
    assert login.header == "Bearer token3"
    assert told == []


def test_a_failed_renewal_is_told_and_tried_again(
    issuer: Issuer, login: Login, told: list[str]
) -> None:
    """Each failure with its reason and what is left of the old token; then that it worked."""
    issuer.problem = "the identity is gone"
    pass_time(issuer, 61)
    pass_time(issuer, 0.5)
    assert (issuer.asked, login.header) == (2, "Bearer token1")
    pass_time(issuer, 0.5)
    pass_time(issuer, 50)
    issuer.problem = ""
    pass_time(issuer, 10)
    assert login.header == "Bearer token5"
    first, second, third, last = told
    assert "(try 1: the identity is gone); it is valid for another 39 s; next try in 1 s" in first
    assert "(try 2:" in second
    assert "expired 12 s ago, so requests are refused" in third
    assert "renewed after 3 failed tries" in last


def test_another_identity_is_not_taken(issuer: Issuer, login: Login, told: list[str]) -> None:
    """Where another login is found in mid-run, the run does not go on with it."""
    issuer.identity = Identity(kind="user", object_id="another", tenant="mine")
    pass_time(issuer, 61)
    assert login.header == "Bearer token1"
    assert "object id another" in told[0]


def test_the_same_token_from_a_cache_is_no_failure(
    issuer: Issuer, login: Login, told: list[str]
) -> None:
    """Azure CLI returns the old token until shortly before its end: it is asked again."""
    issuer.same = True
    pass_time(issuer, 61)
    pass_time(issuer, 61)
    asked = issuer.asked
    pass_time(issuer, 1)
    assert (login.header, issuer.asked, told) == ("Bearer same", asked, [])


def test_a_refusal_renews_the_token_once_for_all(
    issuer: Issuer, login: Login, told: list[str]
) -> None:
    """Greenlets that are refused at the same time wait for one renewal, and get its token."""
    issuer.takes = lambda: gevent.sleep(0.02)
    asking = [gevent.spawn(login.renewed_after, "Bearer token1") for _ in range(50)]
    gevent.joinall(asking)
    assert [one.value for one in asking] == [True] * 50
    assert (issuer.asked, login.header) == (2, "Bearer token2")
    assert login.renewed_after("Bearer token1")
    assert issuer.asked == 2
    assert told == ["a request was refused with status 401, so the access token is renewed"]


def test_a_second_refusal_soon_after_renews_nothing(issuer: Issuer, login: Login) -> None:
    """A new token that is refused too has another cause; much later there may be a renewal."""
    assert login.renewed_after("Bearer token1")
    assert not login.renewed_after("Bearer token2")
    assert issuer.asked == 2
    issuer.now_s += 31
    assert login.renewed_after("Bearer token2")


def test_a_refusal_without_a_new_token_ends_in_time(
    issuer: Issuer, login: Login, told: list[str]
) -> None:
    """Where the renewal fails, the operation ends with its refusal, and the background goes on."""
    issuer.problem = "gone"
    assert not login.renewed_after("Bearer token1")
    assert "gone" in told[-1]
    issuer.problem = ""
    pass_time(issuer, 1.1)
    assert login.header == "Bearer token3"


def test_the_sdk_gets_the_current_token_whatever_it_asks_for(login: Login) -> None:
    """A challenge that names another audience or tenant gets no token for it."""
    options = login.for_sdk()
    credential = options["credential"]
    asked = "https://management.azure.com/.default"
    assert credential.get_token(asked, tenant_id="another").token == "token1"
    found = credential.get_token_info(asked, options={"tenant_id": "another"})
    assert (found.token, found.expires_on) == ("token1", 1100)


def test_endpoints_of_one_cloud_share_a_login() -> None:
    """A process has one token for each audience."""
    logins = Logins({"AZURE_STORAGE_KEY": "a", "AZURE_TENANT_ID": "mine"})
    one = logins.of(STORAGE, "a.table.core.windows.net")
    assert one is logins.of(STORAGE, "b.table.core.windows.net")
    assert one is not logins.of(STORAGE, "b.table.core.chinacloudapi.cn")
    assert one is not logins.of(COSMOS, "b.table.cosmos.azure.com")
    assert one.ignored == ("AZURE_STORAGE_KEY",)
    assert one.identity.tenant == "mine"
    assert "Bearer" not in repr(one)
