"""The command line: arguments to commands. What a command does is not here."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Coroutine, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from echokit_py import log
from echokit_py.errors import ConfigError, EchoKitError

COMMANDS = ("serve", "check", "device", "assemble", "models")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # `echokit-py config.toml` is `echokit-py serve config.toml`, as the Rust server's users write it.
    if not arguments or (arguments[0] not in COMMANDS and arguments[0] not in {"-h", "--help", "--version"}):
        arguments.insert(0, "serve")
    args = _parser(arguments[0]).parse_args(arguments)
    log.setup("WARNING" if args.command != "serve" else "INFO")
    try:
        return int(args.run(args))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except EchoKitError as error:
        sys.stderr.write(f"echokit-py: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _parser(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="echokit-py", description="A voice-assistant server for EchoKit boards.")
    parser.add_argument("--version", action="version", version=f"echokit-py {version('echokit-py')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_serve(commands.add_parser("serve", help="serve (the default command)"))
    _add_check(commands.add_parser("check", help="check the configuration, then try each back end"))
    device = commands.add_parser("device", help="a simulated board that speaks to a server")
    assemble = commands.add_parser("assemble", help="show how a recorded LLM stream is understood")
    models = commands.add_parser("models", help="show or fetch the local models")
    # Each command's own imports only when it is the one: `serve` must listen at once.
    if command == "device":
        _add_device(device)
    elif command == "assemble":
        _add_assemble(assemble)
    elif command == "models":
        _add_models(models)
    return parser


def _run(work: Coroutine[Any, Any, int]) -> int:
    return asyncio.run(work)


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config",
        nargs="?",
        type=Path,
        default=Path(os.environ.get("CONFIG_PATH", "config.toml")),
        help="the configuration file (default: $CONFIG_PATH, then config.toml)",
    )


def _add_serve(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("--addr", metavar="HOST:PORT", help="listen here instead of the configuration's addr")

    def run(args: argparse.Namespace) -> int:
        from echokit_py import registry
        from echokit_py.commands.serve import serve
        from echokit_py.config.address import parse_address
        from echokit_py.config.load import read

        loaded = read(args.config, plugins={kind: registry.platforms(kind) for kind in ("asr", "llm", "tts")})
        settings = loaded.settings
        log.setup(settings.log_level)
        for warning in loaded.warnings:
            logging.getLogger(__name__).warning("%s", warning)
        if args.addr is not None:
            try:
                parse_address(args.addr)
            except ValueError as error:
                raise EchoKitError(f"--addr: {error}") from None
            settings = settings.model_copy(update={"addr": args.addr})
        return _run(serve(settings))

    parser.set_defaults(run=run)


def _add_check(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("--offline", action="store_true", help="validate the file only, contact nothing")

    def run(args: argparse.Namespace) -> int:
        from echokit_py.commands.check import check

        return _run(check(args.config, offline=args.offline))

    parser.set_defaults(run=run)


def _add_device(parser: argparse.ArgumentParser) -> None:
    from echokit_py.commands.say import say
    from echokit_py.device import command

    command.add_arguments(parser)
    parser.set_defaults(run=lambda args: _run(command.run(args, speak=say)))


def _add_assemble(parser: argparse.ArgumentParser) -> None:
    from echokit_py.llm import assemble

    assemble.add_arguments(parser)
    parser.set_defaults(run=assemble.run)


def _add_models(parser: argparse.ArgumentParser) -> None:
    from echokit_py.models import command

    command.add_arguments(parser)
    parser.set_defaults(run=lambda args: _run(command.run(args)))
