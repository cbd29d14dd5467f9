"""Secrets of a server are taken out of texts."""

from __future__ import annotations

from pydantic import SecretStr

from echokit_py.config.settings import McpServer
from echokit_py.mcp.mask import mask


def test_key_headers_and_what_the_url_hides_are_taken_out() -> None:
    server = McpServer(
        server="https://user:pass-word-1@host/mcp?api_key=query-key-1&v=123456789",
        api_key=SecretStr("key-abcdef"),
        headers={"X-Auth": SecretStr("Basic dXNlcjpw"), "X-Version": SecretStr("1")},
    )
    hide = mask(server)
    assert hide("key-abcdef, dXNlcjpw, Basic dXNlcjpw, pass-word-1, query-key-1") == "***, ***, ***, ***, ***"
    assert hide("version 1 of 123456789 at host") == "version 1 of 123456789 at host"


def test_only_secret_variables_are_taken_out() -> None:
    server = McpServer(type="stdio", command="x", env={"API_TOKEN": "tok-123456", "FOLDER": "/home/me"})
    assert mask(server)("tok-123456 in /home/me") == "*** in /home/me"
