"""The child process that runs llama.cpp's HTTP server: a program of its own that imports nothing of ours.

`llama_supervisor.py` starts it. It reads one JSON object from standard input, loads the model, prints one JSON line
`{"url": …}` and serves until its standard input ends, which happens when the parent closes it or dies. Everything
llama.cpp says goes to standard error.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

# The answers of conversations whose slot another one took, kept in memory. llama.cpp's own default is 8 GiB.
_PROMPT_CACHE_MIB = 64
_WARNINGS, _INFORMATION = 2, 3  # llama.cpp's verbosity; neither shows prompts
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def parameters(options: dict[str, Any]) -> Any:
    """Make xllamacpp's CommonParams from `llama_supervisor.Options` as a dictionary."""
    import xllamacpp  # takes 0.1 s and 30 MB: for the child only

    params = xllamacpp.CommonParams()
    params.model.path = options["model"]
    params.model_alias = {options["alias"]}
    # Each answer has its own part of the context: in a common pool, a conversation that overflows it was seen to fail
    # the others too. Eight bits instead of sixteen make up for the memory (two times 4096 tokens: 100 MB, not 190).
    params.kv_unified = False
    params.n_ctx = options["context"] * options["parallel"]
    params.n_parallel = options["parallel"]
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_Q8_0
    params.cpuparams.n_threads = options["threads"]
    params.cpuparams_batch.n_threads = options["threads"]
    params.n_threads_http = options["parallel"] + 16  # a request that waits for a slot holds one
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [options["api_key"]]
    params.use_jinja = True
    # Hybrid models (Qwen3) would think for seconds before the first spoken word.
    params.enable_reasoning = 0
    params.default_template_kwargs = {"enable_thinking": "false"}
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = _INFORMATION if options["verbose"] else _WARNINGS
    return params


def main() -> None:
    """Serve until standard input ends."""
    announce = _private_stdout()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides when we stop
    _die_with_parent()
    line = _first_line()
    if not line:
        return
    options = json.loads(line)
    if os.getppid() != options["parent"]:  # it died before we asked to be told
        return
    _be_first_to_go()
    threading.Thread(target=_leave_at_end_of_input, daemon=True).start()
    import xllamacpp

    try:
        server = xllamacpp.Server(parameters(options))
    except RuntimeError:  # llama.cpp has said why before
        sys.exit(1)
    os.write(announce, json.dumps({"url": server.listening_address}).encode() + b"\n")
    threading.Event().wait()


def _first_line() -> bytes:
    """Read standard input's first line, past Python's buffers: a thread that waits in those can't be left behind."""
    line = b""
    while not line.endswith(b"\n") and (data := os.read(0, 1 << 16)):
        line += data
    return line


def _private_stdout() -> int:
    """Keep standard output for our one line: return a copy of it, and send what libraries print to standard error."""
    announce = os.dup(1)
    os.dup2(2, 1)
    return announce


def _die_with_parent() -> None:
    """Have Linux kill us when the parent dies, also while a model loads. Elsewhere the end of input must do."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _be_first_to_go() -> None:
    """When memory runs out, this process shall end: it is restarted, while the voice server holds the connections."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def _leave_at_end_of_input() -> None:
    while os.read(0, 1 << 16):
        pass
    # Without unwinding: llama.cpp's threads may be in the middle of an answer nobody waits for any more.
    os._exit(0)


if __name__ == "__main__":
    main()
