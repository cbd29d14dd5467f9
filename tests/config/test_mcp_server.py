"""Tests for echokit_py.config.mcp_server: the kinds of entries, their names, and no secret in sight."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from echokit_py.config.load import parse
from echokit_py.config.mcp_server import McpServer, with_names_apart
from echokit_py.errors import ConfigError

HEAD = """\
[asr]
platform = "faster_whisper"
[tts]
platform = "piper"
[llm]
platform = "llama_cpp"
[[llm.mcp_server]]
"""


def entry(text: str, **environ: str) -> McpServer:
    return parse(HEAD + text, "f.toml", environ=environ).settings.llm.mcp_server[0]


def test_the_defaults() -> None:
    server = entry('server = " http://house.local:8000/mcp "')
    assert (server.type, server.server, server.name) == (
        "http_streamable",
        "http://house.local:8000/mcp",
        "house_local_8000",
    )
    assert (server.timeout_sec, server.max_result_chars, server.filler_after_ms) == (30, 8000, 700)
    assert (server.allow, server.deny, server.call_mcp_message, server.env, dict(server.headers)) == (
        (),
        (),
        "",
        {},
        {},
    )


def test_a_program() -> None:
    text = 'type = "stdio"\ncommand = "uvx"\nargs = ["mcp-server-time"]\nenv = { KEY = "${SECRET}" }'
    server = entry(text, SECRET="x y")
    assert (server.command, server.args, server.env) == ("uvx", ("mcp-server-time",), {"KEY": "x y"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "7: server: is missing; write for example server = \"http://localhost:8000/mcp\""),
        ('server = ""', '8: server: is missing; write for example server = "http://localhost:8000/mcp"'),
        ('type = "sse"\nserver = "house"',
         '9: server: must be a URL that starts with http:// or https://; found the text "house"'),
        ('type = "stdio"', '7: command: is missing; write for example command = "uvx" and args = ["mcp-server-time"]'),
        ('type = "stdio"\ncommand = " "',
         '9: command: is missing; write for example command = "uvx" and args = ["mcp-server-time"]'),
        ('command = "uvx"', '8: command: belongs to a program that is started: write type = "stdio" as well'),
        ('server = "http://h"\nargs = ["s3cret"]',
         '9: args: belongs to a program that is started: write type = "stdio" as well'),
        ('type = "stdio"\ncommand = "x"\nargs = "--key s3cret"',
         "10: args: must be a list in brackets […]; found something else (it isn't shown)"),
        ('type = "stdio"\ncommand = "x"\nserver = "http://u:s3cret@h"',
         '10: server: is the address of a server on the network; with type = "stdio" there is command'),
        ('type = "stdio"\ncommand = "x"\napi_key = "s3cret"',
         "10: api_key: goes to a server on the network; give a program its key in env, e.g."
         ' env = { API_KEY = "${MY_KEY}" }'),
        ('type = "stdio"\ncommand = "x"\nheaders = { A = "s3cret" }',
         "10: headers: go to a server on the network; give a program what it needs in env or args"),
        ('type = "stdio"\ncommand = "x"\nenv = { "A=B" = "s3cret" }',
         '10: env: a variable has a name without "=", and no NUL in it (what was found isn\'t shown)'),
        ('type = "stdio"\ncommand = "x"\nenv = { A = 5 }',
         '10: env.A: must be a text in quotes "…"; found something else (it isn\'t shown)'),
        ('server = "http://h"\nheaders = { A = "s3cret\\n" }',
         "9: headers: no HTTP header can be like that: no line breaks, ASCII only (what was found isn't shown)"),
        ('server = "http://h"\nheaders = { "A B" = "s3cret" }',
         "9: headers: no HTTP header can be like that: no line breaks, ASCII only (what was found isn't shown)"),
        ('server = "http://h"\nname = "my house"',
         "9: name: 1 to 32 letters, digits, _ and -: it may stand before the names of its tools;"
         ' found the text "my house"'),
        ('server = "http://h"\nallow = "get_*"', '9: allow: must be a list in brackets […]; found the text "get_*"'),
        ('server = "http://h"\ndeny = [""]', '9: deny: a pattern is empty; "*" stands for every tool'),
        ('server = "http://h"\ntimeout_sec = 0', "9: timeout_sec: must be more than 0 seconds; found the number 0"),
        ('server = "http://h"\nmax_result_chars = 10',
         "9: max_result_chars: must be at least 100; found the number 10"),
        ('server = "http://h"\nfiller_after_ms = 700.5',
         "9: filler_after_ms: must be a whole number, without quotes; found the number 700.5"),
        ('server = "http://h"\ntype = "streamable-http"',
         '9: type: must be one of "http_streamable", "sse", "stdio"; found the text "streamable-http";'
         ' did you mean "http_streamable"?'),
    ],
)  # fmt: skip
def test_mistakes(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        entry(text)
    assert str(error.value).replace("f.toml:", "").replace("llm.mcp_server[0].", "") == expected
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "right"),
    [("url", "server"), ("endpoint", "server"), ("transport", "type"), ("timeout", "timeout_sec"),
     ("allowed_tools", "allow"), ("exclude", "deny"), ("token", "api_key"), ("environment", "env")],
)  # fmt: skip
def test_what_others_call_the_keys(key: str, right: str) -> None:
    with pytest.raises(ConfigError, match=f'{key}: there is no such key here; did you mean "{right}"'):
        entry(f'server = "http://h"\n{key} = "x"')


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"server": "https://u:p@mcp.example.org/x?key=1"}, "mcp_example_org"),
        ({"server": "http://[::1]:80/"}, "1_80"),
        ({"server": "http://" + "a" * 40}, "a" * 32),
        ({"command": "/opt/bin/tools.sh", "args": ["x"]}, "tools_sh"),
        ({"command": "npx", "args": ["-y", "@scope/server-all@1.2", "stdio"]}, "server-all"),
        ({"command": "uv", "args": ["tool", "run", "mcp-server-time"]}, "mcp-server-time"),
        ({"command": "python3.12", "args": ["-m", "weather_server"]}, "weather_server"),
        ({"command": "npx", "args": ["-y"]}, "npx"),
        ({"command": "///"}, "mcp"),
    ],
)
def test_the_name_when_none_is_given(values: dict[str, object], name: str) -> None:
    kind = "stdio" if "command" in values else "sse"
    assert McpServer.model_validate({"type": kind, **values}).name == name


def test_names_are_put_apart() -> None:
    servers = tuple(McpServer(server=f"http://h/{number}") for number in range(3))
    given = McpServer(server="http://x", name="h_2")
    assert [server.name for server in with_names_apart((*servers, given))] == ["h", "h_3", "h_4", "h_2"]
    text = 'server = "http://h"\nname = "a"\n[[llm.mcp_server]]\nserver = "http://i"\nname = "a"\n'
    with pytest.raises(ConfigError) as error:
        entry(text)
    assert str(error.value) == 'f.toml:7: llm.mcp_server: two servers are called "a"; give each its own name'


def test_no_secret_shows() -> None:
    http = entry('server = "http://u:s3cret@h?token=s3cret"\napi_key = "s3cret"\nheaders = { A = "s3cret" }')
    stdio = entry('type = "stdio"\ncommand = "x"\nargs = ["--pin", "s3cret"]\nenv = { A = "s3cret" }')
    for server in (http, stdio):
        for shown in (repr(server), str(server), str(server.model_dump()), server.model_dump_json(), server.name):
            assert "s3cret" not in shown
    assert http.headers["A"].get_secret_value() == "s3cret"
    assert (stdio.args, stdio.env) == (("--pin", "s3cret"), {"A": "s3cret"})
    with pytest.raises(ValidationError) as error:
        McpServer.model_validate({"type": "stdio", "command": "x", "args": "s3cret", "env": {"A": 1}})
    assert "s3cret" not in str(error.value)
