"""Tests for echokit_py.config.load: whole files, every mistake with its line, warnings, paths."""

from __future__ import annotations

import logging
import textwrap
from pathlib import Path

import pytest

from echokit_py.config.load import load, parse, read
from echokit_py.config.paths import MISSING_HELLO, find_file
from echokit_py.config.settings import FasterWhisperAsr, LlamaCppLlm, OpenAiAsr, OpenAiChatLlm, PiperTts, PluginSettings
from echokit_py.errors import ConfigError

LOCAL = textwrap.dedent(
    """\
    [asr]
    platform = "faster_whisper"
    [tts]
    platform = "piper"
    [llm]
    platform = "llama_cpp"
    """
)


def mistakes(text: str, **variables: str) -> list[str]:
    """The mistakes of a configuration called f.toml."""
    with pytest.raises(ConfigError) as error:
        parse(text, "f.toml", environ=variables)
    assert str(error.value) == "\n".join(str(issue) for issue in error.value.issues)
    return [str(issue) for issue in error.value.issues]


def warnings(text: str, folder: Path = Path(), **variables: str) -> list[str]:
    return [str(warning) for warning in parse(text, "f.toml", folder=folder, environ=variables).warnings]


def test_the_smallest_file() -> None:
    loaded = parse(LOCAL, "f.toml", environ={})
    assert loaded.warnings == ()
    assert loaded.settings.asr == FasterWhisperAsr()
    assert loaded.settings.tts == PiperTts()
    assert loaded.settings.llm == LlamaCppLlm()


def test_a_file_of_the_rust_server_means_the_same() -> None:
    text = textwrap.dedent(
        """\
        addr = "0.0.0.0:9090"
        [asr]
        platform = "Whisper"
        url = "http://localhost:9092/v1/audio/transcriptions"
        lang = "auto"
        vad.threshold = 0.6
        [tts]
        platform = "OpenAI"
        api_key = "${KEY}"
        [llm]
        platform = "OpenAIChat"
        llm_chat_url = "http://localhost:9091/v1/chat/completions"
        api_key = "Bearer gaia-1234"
        history = 0
        sys_prompts = [{ role = "system", content = "Costs ${PRICE}." }]
        [[llm.dynamic_prompts]]
        role = "user"
        content = "Hi"
        [llm.extra]
        enable_search = true
        """
    )
    settings = parse(text, "f.toml", environ={"KEY": "sk-1"}).settings
    assert isinstance(settings.asr, OpenAiAsr)
    assert isinstance(settings.llm, OpenAiChatLlm)
    assert (settings.addr, settings.port) == ("0.0.0.0:9090", 9090)
    assert (settings.asr.lang, settings.asr.vad.threshold) == ("auto", 0.6)
    assert settings.tts.model_dump(mode="json") == {
        "platform": "openai",
        "url": "https://api.openai.com/v1/audio/speech",
        "api_key": "**********",
        "model": "gpt-4o-tts",
        "voice": "alloy",
        "speed": None,
    }
    assert settings.llm.url == "http://localhost:9091/v1/chat/completions"
    assert settings.llm.api_key.get_secret_value() == "gaia-1234"
    assert settings.llm.history == 0
    assert settings.llm.sys_prompts[0].content == "Costs ${PRICE}."
    assert settings.llm.dynamic_prompts[0].role == "user"
    assert settings.llm.extra == {"enable_search": True}


def test_old_files_without_platform_and_without_a_key_for_speech() -> None:
    text = '[asr]\nurl = "http://a"\n[llm]\nllm_chat_url = "http://b"\n[tts]\nplatform = "openai"\n'
    settings = parse(text, "f.toml", environ={}).settings
    assert isinstance(settings.asr, OpenAiAsr)
    assert isinstance(settings.llm, OpenAiChatLlm)
    assert (settings.llm.history, settings.asr.platform, settings.llm.platform) == (10, "openai", "openai_chat")


def test_platforms_of_other_packages_keep_their_keys() -> None:
    text = LOCAL.replace('"piper"', '"mine"\ntoken = "${T}"\ndepth = 3')
    settings = parse(text, "f.toml", environ={"T": "x"}, plugins={"tts": frozenset({"mine"})}).settings
    assert isinstance(settings.tts, PluginSettings)
    assert settings.tts.model_extra == {"token": "x", "depth": 3}


REMOTE = textwrap.dedent(
    """\
    addr = "0.0.0.0:8080"
    [asr]
    platform = "openai"
    url = "http://a"
    [tts]
    platform = "openai"
    [llm]
    platform = "openai_chat"
    url = "http://b"
    """
)  # 9 lines; the cases below add to [llm] from line 10 on

MISTAKES = [
    (REMOTE + 'api-key = "s3cret"\n', 'f.toml:10: llm.api-key: there is no such key here; did you mean "api_key"?'),
    (REMOTE + 'apikey = "s3cret"\n', 'f.toml:10: llm.apikey: there is no such key here; did you mean "api_key"?'),
    (REMOTE + 'Modell = "x"\n', 'f.toml:10: llm.Modell: there is no such key here; did you mean "model"?'),
    (
        REMOTE + "temperature = 1\n",
        "f.toml:10: llm.temperature: this goes to the model with each request; write it below a line [llm.extra]",
    ),
    (
        REMOTE + 'hello_wav = "x"\n',
        "f.toml:10: llm.hello_wav: this key belongs at the top of the file, before the first [table]",
    ),
    (
        REMOTE + 'colour = "s3cret"\n',
        "f.toml:10: llm.colour: there is no such key here; there are sys_prompts, dynamic_prompts, prompts_url,"
        " history, tool_rounds, mcp_server, extra, platform, url, api_key, model",
    ),
    (
        REMOTE + 'llm_chat_url = "http://c"\n',
        'f.toml:10: llm.llm_chat_url: says the same as "url", which is there too; keep one of them',
    ),
    (
        REMOTE + 'history = "five"\n',
        'f.toml:10: llm.history: must be a whole number, without quotes; found the text "five"',
    ),
    (REMOTE + "history = true\n", "f.toml:10: llm.history: must be a whole number, without quotes; found true"),
    (
        REMOTE + "history = 5.5\n",
        "f.toml:10: llm.history: must be a whole number, without quotes; found the number 5.5",
    ),
    (REMOTE + "history = 5000\n", "f.toml:10: llm.history: must be at most 1000; found the number 5000"),
    (REMOTE + "history = [1]\n", "f.toml:10: llm.history: must be a whole number, without quotes; found a list"),
    (REMOTE + "model = 5\n", 'f.toml:10: llm.model: must be a text in quotes "…"; found the number 5'),
    (REMOTE + "model = 1979-05-27\n", 'f.toml:10: llm.model: must be a text in quotes "…"; found a date or time'),
    (
        REMOTE + "api_key = 12345\n",
        'f.toml:10: llm.api_key: must be a text in quotes "…"; found something else (it isn\'t shown)',
    ),
    (
        REMOTE + 'api_key = "s3 cret"\n',
        "f.toml:10: llm.api_key: a key has no spaces, line breaks or letters beyond ASCII, and this one does"
        " (it isn't shown)",
    ),
    (
        REMOTE + 'prompts_url = "ws://u:s3cret@h/?key=s3cret"\n',
        "f.toml:10: llm.prompts_url: must be a URL that starts with http:// or https://;"
        ' found the text "ws://**********@h/?key=**********"',
    ),
    (
        REMOTE + 'sys_prompts = "Be nice."\n',
        'f.toml:10: llm.sys_prompts: must be a list in brackets […]; found the text "Be nice."',
    ),
    (
        REMOTE + 'sys_prompts = [\n  { role = "system", content = "x" },\n  { role = "boss", content = "y" },\n]\n',
        'f.toml:12: llm.sys_prompts[1].role: must be one of "system", "user", "assistant"; found the text "boss"',
    ),
    (
        REMOTE + 'sys_prompts = [\n  { role = "System", content = "x" },\n]\n',
        'f.toml:11: llm.sys_prompts[0].role: must be one of "system", "user", "assistant"; found the text "System";'
        ' did you mean "system"?',
    ),
    (REMOTE + 'sys_prompts = [\n  { role = "system" },\n]\n', "f.toml:11: llm.sys_prompts[0].content: is missing"),
    (
        REMOTE + 'sys_prompts = [\n  { role = "system", content = "x", text = "y" },\n]\n',
        "f.toml:11: llm.sys_prompts[0].text: there is no such key here; there are role, content",
    ),
    (
        REMOTE + 'sys_prompts = [\n  "x"\n]\n',
        'f.toml:11: llm.sys_prompts[0]: must be a table of keys and values; found the text "x"',
    ),
    (
        REMOTE + '[llm.mcp_server]\nserver = "http://m"\n',
        "f.toml:10: llm.mcp_server: is a list of tables: write [[llm.mcp_server]], with two brackets on each side",
    ),
    (
        REMOTE + '[[llm.mcp_server]]\ntype = "sse"\n[[llm.mcp_server]]\nserver = "http://m"\nkey = "s3cret"\n',
        'f.toml:10: llm.mcp_server[0].server: is missing; write for example server = "http://localhost:8000/mcp"\n'
        'f.toml:14: llm.mcp_server[1].key: there is no such key here; did you mean "api_key"?',
    ),
    (
        REMOTE + '[[llm.mcp_server]]\nserver = "http://m"\ntype = "http-streamable"\n',
        'f.toml:12: llm.mcp_server[0].type: must be one of "http_streamable", "sse", "stdio"; found the text'
        ' "http-streamable"; did you mean "http_streamable"?',
    ),
    (
        REMOTE + "[llm.extra]\nwhen = 1979-05-27\n",
        "f.toml:10: llm.extra: dates, times, inf and nan can't be sent to a model; write them as texts in quotes",
    ),
    (REMOTE + "extra = 5\n", "f.toml:10: llm.extra: must be a table of keys and values; found the number 5"),
    (
        REMOTE + "[asr.vad]\nthreshhold = 0.4\n",
        'f.toml:11: asr.vad.threshhold: there is no such key here; did you mean "threshold"?',
    ),
    (
        REMOTE + "[asr.vad]\n\nthreshold = 1.5\n",
        "f.toml:12: asr.vad.threshold: must be less than 1; found the number 1.5",
    ),
    (
        REMOTE + "[asr.vad]\nhangover_ms = 20000\n",
        "f.toml:11: asr.vad.hangover_ms: must be at most 10000 milliseconds; found the number 20000",
    ),
    (
        REMOTE + "[asr.vad]\nhangover_ms = -1\n",
        "f.toml:11: asr.vad.hangover_ms: must be at least 0 milliseconds; found the number -1",
    ),
    (
        REMOTE + "[timeouts]\nturn_s = 0\n",
        "f.toml:11: timeouts.turn_s: must be more than 0 seconds; found the number 0",
    ),
    (REMOTE + "[timeouts]\nturn = 9\n", 'f.toml:11: timeouts.turn: there is no such key here; did you mean "turn_s"?'),
    (REMOTE + "[timeout]\nturn_s = 9\n", 'f.toml:10: timeout: there is no such key here; did you mean "timeouts"?'),
    (REMOTE + "[vad]\nthreshold = 0.4\n", "f.toml:10: vad: there is no such table here; did you mean [asr.vad]?"),
    (
        REMOTE + "[weather]\n",
        "f.toml:10: weather: there is no such key here; there are addr, hello_wav, allowed_origins, log_level,"
        " log_texts, models_dir, timeouts, asr, tts, llm",
    ),
    (
        REMOTE + "[record]\nurl = 'x'\n",
        'f.toml:11: record.url: there is no such key here; there is only "callback_url"',
    ),
    ("record = 1\n" + REMOTE, "f.toml:1: record: must be a table: write [record], with callback_url below it"),
    ("timeouts = 5\n" + REMOTE, "f.toml:1: timeouts: must be a table of keys and values; found the number 5"),
    (
        'log_level = "loud"\n' + LOCAL,
        'f.toml:1: log_level: must be one of "DEBUG", "INFO", "WARNING", "ERROR"; found the text "loud"',
    ),
    ("hello_wav = 1\n" + LOCAL, 'f.toml:1: hello_wav: must be a text in quotes "…"; found the number 1'),
    (
        'addr = "8080"\n' + LOCAL,
        'f.toml:1: addr: the host is missing: write HOST:PORT, e.g. "0.0.0.0:8080"; found the text "8080"',
    ),
    (
        'allowed_origins = ["https://a.b/c"]\n' + LOCAL,
        'f.toml:1: allowed_origins[0]: must be a scheme and a host without a path, such as "https://example.org";'
        ' found the text "https://a.b/c"',
    ),
    (
        REMOTE.replace('url = "http://a"\n', ""),
        'f.toml:2: asr.url: is missing; write for example url = "https://api.openai.com/v1/audio/transcriptions"',
    ),
    (
        REMOTE.replace('url = "http://b"\n', ""),
        'f.toml:7: llm.url: is missing; write for example url = "https://api.openai.com/v1/chat/completions"',
    ),
    (
        REMOTE.replace('platform = "openai_chat"', 'platform = "openai"'),
        'f.toml:8: llm.platform: there is no platform "openai"; did you mean "openai_chat"?'
        ' There are "llama_cpp", "openai_chat", "openai_responses"',
    ),
    (
        REMOTE.replace('[tts]\nplatform = "openai"', '[tts]\nvoice = "alloy"'),
        'f.toml:5: tts.platform: is missing: write platform = "piper" (on this machine), or platform = "openai" with'
        " url, api_key, model and voice of a server that speaks OpenAI's /audio/speech",
    ),
    (
        LOCAL.replace("[tts]", "[[tts]]"),
        "f.toml:3: tts: must be a table: write [tts], with one bracket on each side",
    ),
    (
        'asr = "openai"\n' + REMOTE.replace('[asr]\nplatform = "openai"\nurl = "http://a"\n', ""),
        'f.toml:1: asr: must be a table: write [asr], with its keys below it; found the text "openai"',
    ),
    (
        '[asr]\nplatform = "faster_whisper"\n[tts]\nplatform = "piper"\n',
        'f.toml:0: llm: the table is missing: add a line [llm] and below it platform = "llama_cpp" to answer on this'
        ' machine, or "openai_chat" or "openai_responses" for a server',
    ),
    (
        LOCAL + "\n[[llm.mcp_server]\n",
        "f.toml:8: llm.mcp_server: the brackets don't match: write [[llm.mcp_server]] for an entry of a list,"
        " or [llm.mcp_server] for a table",
    ),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES, ids=[expected[:60] for _, expected in MISTAKES])
def test_mistakes_name_file_line_key_and_what_is_right(text: str, expected: str) -> None:
    assert "\n".join(mistakes(text)) == expected
    assert "s3cret" not in expected


def test_all_mistakes_are_named_in_the_order_of_the_file() -> None:
    text = textwrap.dedent(
        """\
        adr = "x"
        [llm]
        platform = "openai_chat"
        url = "${NO_URL}"
        history = -1
        [tts]
        platform = "fish"
        api_key = "${NO_KEY}"
        [asr]
        platform = "openai"
        url = "ftp://x"
        [asr.vad]
        threshold = "high"
        """
    )
    found = mistakes(text)
    assert [issue.split(": ")[0:2] for issue in found] == [
        ["f.toml:1", "adr"],
        ["f.toml:4", "llm.url"],
        ["f.toml:5", "llm.history"],
        ["f.toml:7", "tts.platform"],
        ["f.toml:8", "tts.api_key"],
        ["f.toml:11", "asr.url"],
        ["f.toml:13", "asr.vad.threshold"],
    ]
    assert "NO_URL is not set" in found[1]


def test_an_empty_file_names_all_three_tables() -> None:
    assert [issue.split(": ")[1] for issue in mistakes("")] == ["asr", "tts", "llm"]


def test_what_a_variable_holds_is_not_shown() -> None:
    (issue,) = mistakes(REMOTE + 'prompts_url = "${U}"\n', U="s3cret")
    assert issue == (
        "f.toml:10: llm.prompts_url: must be a URL that starts with http:// or https://;"
        " found what the environment variable holds"
    )


@pytest.mark.parametrize("value", ["1234", "true", "2024-12-31"])
@pytest.mark.parametrize(
    "entry",
    [
        'type = "stdio"\ncommand = "x"\nenv = {{ PIN = {} }}',
        'type = "stdio"\ncommand = "x"\nargs = ["--pin", {}]',
        'server = "http://x/"\nheaders = {{ X-Pin = {} }}',
    ],
)
def test_what_goes_to_a_program_as_it_is_is_not_shown(entry: str, value: str) -> None:
    (issue,) = mistakes(REMOTE + "[[llm.mcp_server]]\n" + entry.format(value))
    assert issue.endswith('must be a text in quotes "…"; found something else (it isn\'t shown)')


def test_a_number_cannot_come_from_a_variable() -> None:
    (issue,) = mistakes(REMOTE + 'history = "${H}"\n', H="5")
    assert issue == (
        "f.toml:10: llm.history: must be a number, and ${NAME} gives texts only; write the number itself,"
        " without quotes"
    )
    (issue,) = mistakes('log_texts = "${H}"\n' + REMOTE, H="true")
    assert issue == (
        "f.toml:1: log_texts: must be true or false, and ${NAME} gives texts only; write it itself, without quotes"
    )


def test_ways_of_working_that_are_not_in_this_version() -> None:
    (gemini,) = mistakes('[gemini]\napi_key = "s3cret"\n')
    assert gemini.startswith(
        "f.toml:1: gemini: Gemini Live isn't in this version yet; write [asr] and [tts], and [llm]"
    )
    (claude,) = mistakes('[asr]\nurl = "http://a"\n[tts]\nplatform = "piper"\n[claude]\nurl = "ws://x"\n')
    assert claude.startswith("f.toml:5: claude: Claude Code isn't in this version yet; write")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            LOCAL + "[gemini]\napi_key = 's3cret'\n",
            "f.toml:7: gemini: isn't used, since [asr], [llm] and [tts] are there",
        ),
        (
            LOCAL + "[record]\ncallback_url = 'http://x'\n",
            "f.toml:7: record: recording isn't in this version yet, so that nothing is posted to callback_url",
        ),
        (
            REMOTE.replace("[tts]", 'vad_url = "http://v"\n[tts]'),
            "f.toml:5: asr.vad_url: isn't used: the end of speech is found inside this server, with [asr.vad]",
        ),
        (
            LOCAL + '[asr.vad]\nvad_realtime_url = "ws://v"\n',
            "f.toml:8: asr.vad.vad_realtime_url: isn't used: the end of speech is found inside this server,"
            " with [asr.vad]",
        ),
        (
            LOCAL + "[asr.vad]\nthreshold = 0.4\nneg_threshold = 0.4\n",
            "f.toml:9: asr.vad.neg_threshold: should be below threshold;"
            " as it is, speech seems to end while it goes on",
        ),
        (
            LOCAL + '[[llm.mcp_server]]\nserver = "http://m"\n[[llm.mcp_server]]\ntype = "stdio"\ncommand = "m"\n',
            "",
        ),
        (
            LOCAL + 'prompts_url = "http://p"\n',
            "f.toml:7: llm.prompts_url: prompts aren't fetched in this version yet; those in the file are used",
        ),
        (
            LOCAL + 'sys_prompts = [\n{ role = "system", content = "{{ https://p/x.txt }}" }]\n',
            "f.toml:8: llm.sys_prompts[0].content: {{ url }} isn't fetched in this version yet;"
            " put the text itself there",
        ),
        (
            LOCAL.replace('"llama_cpp"', '"openai_responses"')
            + 'url = "https://api.groq.com/openai/v1/chat/responses"\nextra = { max_tokens = 9, top_p = 1 }\n',
            "f.toml:7: llm.url: nothing answers there, so https://api.groq.com/openai/v1/responses is used, which is"
            " Groq's address\n"
            'f.toml:8: llm.extra.max_tokens: is of another API; this one refuses it and calls it "max_output_tokens"',
        ),
        (LOCAL.replace('"llama_cpp"', '"openai_responses"') + "extra = { max_output_tokens = 9 }\n", ""),
        (
            REMOTE + 'api_key = "${EMPTY}"\n',
            "f.toml:10: llm.api_key: the environment variable EMPTY is set, but empty",
        ),
        (
            'hello_wav = "none.wav"\n' + LOCAL,
            "f.toml:1: hello_wav: there is no such file; boards are not greeted with a sound",
        ),
        (LOCAL + 'sys_prompts = [{ role = "system", content = "{{ name }}" }]\n', ""),
        (LOCAL + "[asr.vad]\nneg_threshold = 0.4\n", ""),
    ],
)
def test_warnings(text: str, expected: str) -> None:
    assert "\n".join(warnings(text, EMPTY="")) == expected


def test_load_logs_warnings_and_read_returns_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "config.toml"
    path.write_text('hello_wav = "none.wav"\n' + LOCAL)
    with caplog.at_level(logging.WARNING):
        settings = load(path, environ={})
    assert caplog.messages == [f"{path}:1: hello_wav: there is no such file; boards are not greeted with a sound"]
    assert [str(warning) for warning in read(path, environ={}).warnings] == caplog.messages
    assert settings.hello_wav is None


def test_load_reads_the_environment_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.toml"
    path.write_text('addr = "127.0.0.1:${PORT_OF_TEST}"\n' + LOCAL)
    monkeypatch.setenv("PORT_OF_TEST", "81")
    assert load(path).port == 81


def test_mistakes_name_the_path_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.toml").write_text("adr = 1\n" + LOCAL)
    with pytest.raises(ConfigError, match=r'^config\.toml:1: adr: there is no such key here; did you mean "addr"\?$'):
        load(Path("config.toml"), environ={})


class TestPaths:
    def test_files_beside_the_configuration_come_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "conf").mkdir()
        (tmp_path / "work").mkdir()
        monkeypatch.chdir(tmp_path / "work")
        (tmp_path / "work" / "hello.wav").touch()
        text = 'hello_wav = "hello.wav"\n' + LOCAL
        assert parse(text, "f", folder=tmp_path / "conf").settings.hello_wav == str(tmp_path / "work" / "hello.wav")
        (tmp_path / "conf" / "hello.wav").touch()
        assert parse(text, "f", folder=tmp_path / "conf").settings.hello_wav == str(tmp_path / "conf" / "hello.wav")

    def test_absolute_and_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "hello.wav").touch()
        for name in ("~/hello.wav", str(tmp_path / "hello.wav")):
            settings = parse(f'hello_wav = "{name}"\n' + LOCAL, "f", folder=Path("/nowhere")).settings
            assert settings.hello_wav == str(tmp_path / "hello.wav")

    @pytest.mark.parametrize("name", ["~nobody-of-this-name/a.onnx", "b" * 300 + ".onnx", "x/" + "b" * 300])
    def test_names_that_the_system_refuses_are_of_no_file(self, tmp_path: Path, name: str) -> None:
        text = f'hello_wav = "{name}"\nmodels_dir = "{name}"\n' + LOCAL.replace('"piper"', f'"piper"\nvoice = "{name}"')
        found = parse(text, "f", folder=tmp_path)
        assert [str(warning) for warning in found.warnings] == [f"f:1: hello_wav: {MISSING_HELLO}"]
        assert found.settings.hello_wav is None
        assert found.settings.models_dir == str(tmp_path / name)
        assert found.settings.tts == PiperTts(voice=name)

    def test_a_folder_that_may_not_be_looked_into(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuses(_: Path) -> bool:
            raise PermissionError

        monkeypatch.setattr(Path, "exists", refuses)  # the user of the tests may be root
        assert find_file("hello.wav", tmp_path) is None

    def test_models(self, tmp_path: Path) -> None:
        for name in ("voice.onnx", "model.gguf"):
            (tmp_path / name).touch()
        (tmp_path / "whisper").mkdir()
        text = (
            'models_dir = "models"\n[asr]\nplatform = "faster_whisper"\nmodel = "./whisper"\n'
            '[tts]\nplatform = "piper"\nvoice = "voice.onnx"\n[llm]\nplatform = "llama_cpp"\nmodel = "model.gguf"\n'
        )
        settings = parse(text, "f", folder=tmp_path).settings
        assert settings.models_dir == str(tmp_path / "models")
        assert settings.asr == FasterWhisperAsr(model=str(tmp_path / "whisper"))
        assert settings.tts == PiperTts(voice=str(tmp_path / "voice.onnx"))
        assert settings.llm == LlamaCppLlm(model=str(tmp_path / "model.gguf"))

    def test_names_of_models_stay_names(self, tmp_path: Path) -> None:
        (tmp_path / "tiny.en").mkdir()
        text = LOCAL.replace('"piper"', '"piper"\nvoice = "none.onnx"')
        settings = parse(text, "f", folder=tmp_path).settings
        assert settings.asr == FasterWhisperAsr(model="tiny.en")
        assert settings.tts == PiperTts(voice="none.onnx")
