"""What all sessions share: the providers, by their interfaces, and the settings that sessions read."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field

from echokit_py.asr.base import Asr
from echokit_py.config.settings import Timeouts, VadSettings
from echokit_py.llm.base import Llm, Message
from echokit_py.llm.rounds import ROUNDS
from echokit_py.session.apologies import Apology
from echokit_py.session.journal import Journal
from echokit_py.tools.base import NoTools, ToolSource
from echokit_py.tools.schema import Schemas
from echokit_py.tts.base import Tts
from echokit_py.vad.base import Vad


@dataclass(frozen=True, slots=True)
class Services:
    """Built once by the composition root.

    Attributes:
        hello: s16le mono 16 kHz audio sent to a device that connects afresh, b"" for none.
        apologies: what is said when a stage failed, by stage.
        encoder: threads for framing and encoding audio.
        language: what users speak, as an ISO 639 code; "" when that is not known.
        tool_rounds: steps with tool calls in one turn.
    """

    vad: Vad
    asr: Asr
    llm: Llm
    tts: Tts
    vad_settings: VadSettings
    timeouts: Timeouts
    encoder: Executor
    tools: ToolSource = field(default_factory=NoTools)
    schemas: Schemas = field(default_factory=Schemas)
    language: str = ""
    tool_rounds: int = ROUNDS
    history_turns: int = 10
    system: tuple[Message, ...] = ()
    few_shot: tuple[Message, ...] = ()
    hello: bytes = b""
    apologies: dict[str, Apology] = field(default_factory=dict)
    journal: Journal = field(default_factory=Journal)
