"""The command `echokit-py device`: arguments, and the printing of what a simulated board meets. Speaks no protocol."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from echokit_py.audio.pcm import seconds
from echokit_py.audio.resample import to_mono_16k
from echokit_py.audio.wav import read_wav, write_wav
from echokit_py.device.board import Outcome
from echokit_py.device.client import converse
from echokit_py.device.errors import DeviceError
from echokit_py.device.turn import Turn
from echokit_py.errors import EchoKitError
from echokit_py.log import sanitize
from firmware_protocol.events import ServerEvent
from firmware_protocol.link import LinkParameters

Speak = Callable[[str], Awaitable[bytes]]
"""Turns a text into speech: s16le, mono, 16 kHz."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--url", required=True, help="the server, as it is set up on a board: ws://HOST:PORT/ws/")
    parser.add_argument("--id", help="the device id; by default a new one that looks like a MAC")
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument("--wav", type=Path, metavar="FILE", help="speak this WAV file, of any rate")
    question.add_argument("--say", metavar="TEXT", help="speak this text with the local voice")
    question.add_argument("--text", metavar="TEXT", help="send this text instead of speech")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the answer's audio: a WAV, 16 kHz, mono")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--no-opus", action="store_true", help="take PCM instead of Opus")
    parser.add_argument("--no-vowel", action="store_true", help="take audio without mouths")
    parser.add_argument("--no-stream-asr", action="store_true", help="end the question with Submit, as web pages do")
    parser.add_argument("--reconnect", action="store_true", help="go on with the conversation of this id")
    parser.add_argument("--fast", action="store_true", help="neither speak nor play in real time")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="give up after (%(default)g)")


async def run(args: argparse.Namespace, *, speak: Speak | None = None) -> int:
    """Run the command; return the exit status: 0 when an answer was spoken, else 1 with a sentence on standard error.

    `speak` makes the audio for `--say`.
    """
    try:
        pcm = await _question(args, speak)
        turn = await converse(
            args.url,
            device_id=args.id or secrets.token_hex(6),
            pcm=pcm,
            text=args.text,
            link=_link(args),
            realtime=not args.fast,
            limit_s=args.limit,
            on_event=_print_json if args.json else _print_line,
        )
        (_print_json_summary if args.json else _print_summary)(turn)
        if args.out is not None:
            await asyncio.to_thread(args.out.write_bytes, write_wav(turn.audio))
    except EchoKitError as error:
        return _fail(str(error))
    except OSError as error:  # the files; the connection's own are DeviceErrors
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return 0 if turn.outcome is Outcome.ANSWERED and turn.answer else _fail(_why_not(turn))


async def _question(args: argparse.Namespace, speak: Speak | None) -> bytes | None:
    if args.wav is not None:
        return await asyncio.to_thread(_load, args.wav)
    if args.say is None:
        return None
    if speak is None:
        raise DeviceError("--say needs a voice on this machine: pip install 'echokit-py[local]'")
    return await speak(args.say)


def _load(path: Path) -> bytes:
    return to_mono_16k(read_wav(path.read_bytes()))


def _link(args: argparse.Namespace) -> LinkParameters:
    return LinkParameters(
        reconnect=args.reconnect,
        opus=not args.no_opus,
        vowel=not args.no_vowel,
        stream_asr=not args.no_stream_asr,
    )


def _why_not(turn: Turn) -> str:
    return turn.detail or "the server ended the turn without an answer"


def _fail(sentence: str) -> int:
    sys.stderr.write(f"echokit-py device: {sanitize(sentence, 500)}\n")
    return 1


def _contents(event: ServerEvent) -> dict[str, Any]:
    """The fields of an event for a reader: of audio only how many bytes there are."""
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    return {("bytes" if name == "data" else name): len(v) if name == "data" else v for name, v in values.items()}


def _print_json(at: float, event: ServerEvent) -> None:
    _write_json({"t": round(at, 3), "event": type(event).__name__, **_contents(event)})


def _print_json_summary(turn: Turn) -> None:
    _write_json(
        {
            "t": round(turn.ended_s, 3),
            "event": "Summary",
            "outcome": turn.outcome,
            "asr": turn.asr,
            "answer": turn.answer,
            "end_of_speech_s": _rounded(turn.end_of_speech_s),
            "first_audio_s": _rounded(turn.first_audio_s),
            "audio_s": round(seconds(turn.audio), 3),
        }
    )


def _write_json(content: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _rounded(time_s: float | None) -> float | None:
    return None if time_s is None else round(time_s, 3)


def _print_line(at: float, event: ServerEvent) -> None:
    contents = ", ".join(f"{name} {value}" for name, value in _contents(event).items())
    sys.stdout.write(f"{at:8.3f}  {type(event).__name__:<20}{sanitize(contents)}\n")
    sys.stdout.flush()


def _print_summary(turn: Turn) -> None:
    latency = "none" if turn.first_audio_s is None else f"{turn.first_audio_s:.3f} s after the end of speech"
    sys.stdout.write(
        f"\noutcome      {turn.outcome}\nheard        {sanitize(turn.asr, 2000)}\n"
        f"answer       {sanitize(' '.join(turn.answer), 5000)}\n"
        f"first audio  {latency}\naudio        {seconds(turn.audio):.3f} s\n"
    )
    sys.stdout.flush()
