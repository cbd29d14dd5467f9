"""The local language model: the real child with the packaged model, and its supervision with scripted children."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import psutil
import pytest

from echokit_py.config.settings import LlamaCppLlm
from echokit_py.errors import BackendError, ErrorKind, ModelError
from echokit_py.http import HttpClient
from echokit_py.llm import llama_supervisor
from echokit_py.llm.base import Message, Step, TextDelta
from echokit_py.llm.llama_cpp import LlamaCpp, build, choose_threads
from echokit_py.llm.llama_supervisor import LlamaServer, Options
from echokit_py.models.choose import PACKAGED_LLM
from echokit_py.models.store import ModelStore

LIMIT_S = 100
ROOT = Path(__file__).parents[2]


def options(model: Path | str = "model.gguf") -> Options:
    return Options(str(model), "model", context=512, parallel=2, threads=1, api_key="key")


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (4, 3), (8, 7), (64, 16)])
def test_a_core_stays_free_for_speech(cores: int, threads: int) -> None:
    assert choose_threads(cores) == threads


async def test_before_the_start_requests_fail_at_once(tmp_path: Path) -> None:
    http = HttpClient(connect_s=1)
    llm = build(LlamaCppLlm(), http=http, models=ModelStore(tmp_path))
    with pytest.raises(BackendError, match="not started"):
        llm.stream([{"role": "user", "content": "Hello"}])
    assert llm.pid is None
    await llm.close()
    await http.close()


# ---- supervision, with children that do as they are told ----

SERVES = (
    'import os, sys\nsys.stdin.readline()\nprint(\'{"url": "http://127.0.0.1:9"}\', flush=True)\nsys.stdin.read()\n'
)
STUBBORN = SERVES + "import threading\nthreading.Event().wait()\n"
REFUSES = "import sys\nsys.stderr.write('0.00.001.234 E load: no such tensor\\n')\nsys.exit(1)\n"
RAMBLES = "import sys\nsys.stdin.readline()\nprint('hello', flush=True)\n"
MUTE = "import sys\nsys.exit(0)\n"
WITHOUT_RUNTIME = "import sys\nsys.modules['xllamacpp'] = None\nraise ImportError(\"No module named 'xllamacpp'\")\n"
HANGS = "import sys\nsys.stdin.read()\n"


class Script:
    """A child program that can be exchanged, and pauses that last until the test says so."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "child.py"
        self.pauses: asyncio.Queue[float] = asyncio.Queue()
        self.go_on = asyncio.Semaphore(0)

    def write(self, program: str) -> None:
        self.path.write_text(program)

    def server(self) -> LlamaServer:
        return LlamaServer(options(), self.pause, self.path)

    async def pause(self, seconds: float) -> None:
        self.pauses.put_nowait(seconds)
        await self.go_on.acquire()


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


@pytest.fixture(autouse=True)
def no_child_left() -> Iterator[None]:
    before = psutil.Process().children()  # other tests' servers may still run
    yield
    left = [child for child in psutil.Process().children() if child not in before]
    assert [child for child in left if child.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (REFUSES, "can't serve model.gguf: load: no such tensor"),
        (RAMBLES, "can't serve model.gguf"),
        (MUTE, "ended without a word"),
        (WITHOUT_RUNTIME, "install echokit-py with its extra `local`"),
    ],
    ids=["refuses", "rambles", "mute", "without runtime"],
)
async def test_a_child_that_cannot_start_is_an_error_with_its_reason(script: Script, program: str, words: str) -> None:
    script.write(program)
    server = script.server()
    with pytest.raises(ModelError, match=words):
        await server.start()
    assert server.pid is None


async def test_a_child_that_never_gets_ready_is_ended(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_supervisor, "_LOAD_LIMIT_S", 0.2)
    script.write(HANGS)
    with pytest.raises(ModelError, match="not loaded within"):
        await script.server().start()


async def test_a_start_that_is_cancelled_leaves_no_child(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    born = asyncio.Event()
    greet = LlamaServer._greet

    async def greet_and_tell(*arguments: object) -> str:
        born.set()
        return await greet(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(LlamaServer, "_greet", greet_and_tell)
    script.write(HANGS)
    task = asyncio.create_task(script.server().start())
    async with asyncio.timeout(LIMIT_S):
        await born.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_restarts_come_at_growing_intervals_until_one_serves(script: Script) -> None:
    script.write(SERVES)
    server = script.server()
    await server.start()
    async with asyncio.timeout(LIMIT_S):
        script.write(REFUSES)
        before = kill(server)
        pauses = []
        for _ in range(8):
            pauses.append(await script.pauses.get())
            with pytest.raises(BackendError) as caught:
                server.chat_url()
            assert caught.value.kind is ErrorKind.CONNECT
            assert server.pid is None
            if len(pauses) == 8:
                script.write(SERVES)
            script.go_on.release()
        assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
        await until_serving(server, before)
        assert server.chat_url() == "http://127.0.0.1:9/v1/chat/completions"
        await server.close()


async def test_after_a_long_life_the_pauses_begin_anew(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_supervisor, "_HEALTHY_AFTER_S", -1.0)
    script.write(SERVES)
    server = script.server()
    await server.start()
    async with asyncio.timeout(LIMIT_S):
        for _ in range(3):
            before = kill(server)
            assert await script.pauses.get() == 1
            script.go_on.release()
            await until_serving(server, before)
        await server.close()


async def test_closing_during_a_pause_ends_the_restarts(script: Script) -> None:
    script.write(SERVES)
    server = script.server()
    await server.start()
    async with asyncio.timeout(LIMIT_S):
        kill(server)
        await script.pauses.get()
        await server.close()
    script.go_on.release()
    with pytest.raises(BackendError):
        server.chat_url()


async def test_a_child_that_does_not_leave_is_killed(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_supervisor, "_EXIT_LIMIT_S", 0.1)
    script.write(STUBBORN)
    server = script.server()
    await server.start()
    child = server.pid
    assert child is not None
    assert psutil.pid_exists(child)
    async with asyncio.timeout(LIMIT_S):
        await server.close()
        await server.close()  # a second time is harmless
    assert not psutil.pid_exists(child)
    assert server.pid is None


# ---- the real child ----


@pytest.fixture(scope="session")
def gguf() -> Path:
    try:
        return asyncio.run(ModelStore().path(PACKAGED_LLM))
    except ModelError as error:
        pytest.skip(f"no model to test with: {error}")


@pytest.fixture
async def llm(gguf: Path) -> AsyncIterator[LlamaCpp]:
    http = HttpClient(connect_s=5)
    settings = LlamaCppLlm(model=str(gguf), context=512, extra={"max_tokens": 24, "temperature": 0})
    provider = build(settings, http=http, models=ModelStore())
    async with asyncio.timeout(LIMIT_S):
        await provider.start()
    yield provider
    await provider.close()
    await http.close()


def question(text: str = "Which animal says meow?") -> list[Message]:
    return [{"role": "user", "content": text}]


async def answer(llm: LlamaCpp, messages: list[Message]) -> str:
    """The text of an answer, which must have come in pieces and ended with a step."""
    async with asyncio.timeout(LIMIT_S):
        events = [event async for event in llm.stream(messages)]
    assert isinstance(events[-1], Step)
    assert len(events) > 2
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == events[-1].text
    return events[-1].text


@pytest.mark.models
async def test_the_packaged_model_answers(llm: LlamaCpp) -> None:
    assert "cat" in await answer(llm, question())
    async with asyncio.timeout(LIMIT_S):
        assert "SmolLM2" in await llm.probe()


@pytest.mark.models
async def test_two_questions_at_once_get_their_own_answers(llm: LlamaCpp) -> None:
    animal, days = await asyncio.gather(
        answer(llm, question()), answer(llm, question("Name the seven days of the week."))
    )
    assert "cat" in animal
    assert "Monday" in days


@pytest.mark.models
async def test_a_prompt_that_is_too_long_is_told_apart(llm: LlamaCpp) -> None:
    with pytest.raises(BackendError) as caught:
        await answer(llm, question("word " * 2000))
    assert caught.value.kind is ErrorKind.CONTEXT


@pytest.mark.models
async def test_long_conversations_at_once_do_not_take_each_other_s_room(llm: LlamaCpp) -> None:
    async def finish(word: str) -> str | None:
        async with asyncio.timeout(LIMIT_S):
            events = [event async for event in llm.stream(question(f"{word} " * 300))]
        assert isinstance(events[-1], Step)
        return events[-1].finish_reason

    ends = await asyncio.gather(finish("one"), finish("two"))  # 660 tokens; each may have 512
    assert set(ends) <= {"stop", "length"}


@pytest.mark.models
async def test_a_killed_child_comes_back_and_answers_again(llm: LlamaCpp) -> None:
    assert llm._server is not None
    llm._server._pause = _at_once
    before = kill(llm._server)
    await until_serving(llm._server, before)
    assert "cat" in await answer(llm, question())


@pytest.mark.models
async def test_the_child_listens_on_loopback_only_and_asks_for_its_key(llm: LlamaCpp) -> None:
    assert llm.pid is not None
    listening = [entry.laddr for entry in psutil.Process(llm.pid).net_connections() if entry.status == "LISTEN"]
    assert [address.ip for address in listening] == ["127.0.0.1"]
    assert llm._server is not None
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT_S)) as session,
        session.post(llm._server.chat_url(), json={"messages": question()}) as response,
    ):
        assert response.status == 401
    assert "api_key" not in " ".join(psutil.Process(llm.pid).cmdline())


@pytest.mark.models
async def test_a_file_that_is_no_model_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GIF89a, not a model")
    with pytest.raises(ModelError, match=r"can't serve .*broken\.gguf: .*invalid magic"):
        await LlamaServer(options(tmp_path / "broken.gguf")).start()


@pytest.mark.models
async def test_auto_names_what_it_serves(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelStore, "auto_llm", lambda _: _value(PACKAGED_LLM))
    http = HttpClient(connect_s=5)
    provider = build(LlamaCppLlm(context=512), http=http, models=ModelStore())
    async with asyncio.timeout(LIMIT_S):
        await provider.start()
        assert PACKAGED_LLM in await provider.probe()
        await provider.close()
        await http.close()


PARENT = """
import asyncio, sys
from echokit_py.llm.llama_supervisor import LlamaServer, Options

async def main():
    server = LlamaServer(Options(sys.argv[1], "model", 512, 1, 1, "key"))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.models
async def test_the_child_dies_with_its_parent(gguf: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PARENT,
        str(gguf),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert parent.stdout is not None
    async with asyncio.timeout(LIMIT_S):
        child = psutil.Process(int(await parent.stdout.readline()))
        parent.kill()  # SIGKILL: the parent can't tell anybody
        await parent.wait()
        await asyncio.to_thread(gone, child)


def gone(process: psutil.Process) -> None:
    """Wait until the process has ended. Raises psutil.TimeoutExpired."""
    try:
        process.wait(timeout=LIMIT_S)
    except psutil.TimeoutExpired:
        if process.status() != psutil.STATUS_ZOMBIE:  # in a container nobody may collect it
            raise


def kill(server: LlamaServer) -> int:
    pid = server.pid
    assert pid is not None
    psutil.Process(pid).kill()
    return pid


async def until_serving(server: LlamaServer, before: int) -> None:
    """Wait until a child other than `before` serves."""
    for _ in range(LIMIT_S * 100):
        if server.pid not in (None, before):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"no new child within {LIMIT_S} s")


async def _at_once(_: float) -> None:
    return None


async def _value(text: str) -> str:
    return text
