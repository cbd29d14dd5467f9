"""The ways in which a fake back end misbehaves on request, for all fakes alike. Knows no API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from enum import StrEnum

from aiohttp import web

PAGE = b"<!DOCTYPE html>\n<html><head><title>Welcome to nginx!</title></head><body><h1>It works</h1></body></html>"
GARBAGE = bytes(range(128, 256)) * 4  # neither UTF-8, nor JSON, nor any audio format


class Fault(StrEnum):
    """What happens to the next requests instead of an answer, or to their answers."""

    REFUSE = "refuse"  # the connection is reset without an answer
    STATUS_500 = "status_500"
    STATUS_429 = "status_429"  # with Retry-After: 7
    HANG = "hang"  # the request is taken, nothing ever comes
    GARBAGE = "garbage"  # status 200 and the promised content type, but rubbish
    HTML = "html"  # status 200 and a web page, as a captive portal or a wrong port answers
    EMPTY = "empty"  # status 200 and no body
    STALL = "stall"  # half the answer, then silence on an open connection
    SLOW = "slow"  # the whole answer, in small pieces with pauses
    CUT_FIRST = "cut_first"  # the connection ends after the first byte of the body
    CUT_MIDDLE = "cut_middle"  # … in the middle
    CUT_LAST = "cut_last"  # … before the last byte


async def replacement(
    request: web.Request, fault: Fault | None, content_type: str, closing: asyncio.Event
) -> web.StreamResponse | None:
    """The answer of a fault that leaves nothing of the true one; None for the others.

    HANG waits for `closing`; a client that disconnects cancels the handler (`handler_cancellation`).
    """
    answers: dict[Fault, Callable[[], web.Response]] = {
        Fault.STATUS_500: lambda: error(500, "The server had an error while processing your request.", "server_error"),
        Fault.STATUS_429: lambda: error(
            429, "Rate limit reached for requests", "requests", "rate_limit_exceeded", {"Retry-After": "7"}
        ),
        Fault.HANG: lambda: web.Response(status=503),
        Fault.REFUSE: web.Response,
        Fault.GARBAGE: lambda: web.Response(body=GARBAGE, content_type=content_type),
        Fault.HTML: lambda: web.Response(body=PAGE, content_type="text/html"),
        Fault.EMPTY: lambda: web.Response(body=b"", content_type=content_type),
    }
    if fault is None or fault not in answers:
        return None
    if fault is Fault.HANG:
        await closing.wait()
    if fault is Fault.REFUSE and request.transport is not None:
        request.transport.abort()
    return answers[fault]()


async def send(
    request: web.Request,
    pieces: Iterable[bytes],
    *,
    content_type: str,
    fault: Fault | None,
    closing: asyncio.Event,
    pause: float = 0.01,
) -> web.StreamResponse:
    """Answer 200 with `pieces` as a chunked body, cut, stalled or slowed down as `fault` says.

    `pause`: seconds between the pieces of SLOW.
    """
    response = web.StreamResponse(headers={"Content-Type": content_type})
    response.enable_chunked_encoding()
    await response.prepare(request)
    pieces = list(pieces)
    whole = b"".join(pieces)
    match fault:
        case Fault.CUT_FIRST | Fault.CUT_MIDDLE | Fault.CUT_LAST:
            keep = {Fault.CUT_FIRST: 1, Fault.CUT_MIDDLE: len(whole) // 2, Fault.CUT_LAST: len(whole) - 1}[fault]
            await response.write(whole[:keep])
            if request.transport is not None:
                request.transport.close()  # what was written is sent, the end of the chunked body never
            return response
        case Fault.STALL:
            await response.write(whole[: len(whole) // 2])
            await closing.wait()
            return response
        case Fault.SLOW:
            size = max(1, len(whole) // 10)
            for start in range(0, len(whole), size):
                await response.write(whole[start : start + size])
                await asyncio.sleep(pause)
        case _:
            for piece in pieces:
                await response.write(piece)
    await response.write_eof()
    return response


def error(
    status: int,
    message: str,
    kind: str = "invalid_request_error",
    code: str | None = None,
    headers: dict[str, str] | None = None,
    param: str | None = None,
) -> web.Response:
    """An error in OpenAI's shape (API reference, "Errors")."""
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return web.json_response(body, status=status, headers=headers)
