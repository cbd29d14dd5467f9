"""Opens the board's WebSocket the way its firmware does, and says in one sentence why it can't. Sends no messages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI, NegotiationError
from websockets.extensions.base import ClientExtensionFactory, Extension
from websockets.typing import ExtensionName, ExtensionParameter

from echokit_py.device.errors import DeviceError
from echokit_py.log import sanitize
from firmware_protocol.link import MAX_FRAME_BYTES, LinkParameters, format_query

_OPEN_S = 10.0  # to connect; the firmware is less patient (3 tries, 300 ms apart), but tests run on loaded machines
_CLOSE_S = 2.0  # a server that doesn't answer the closing isn't waited for


class _CompressionOffer(ClientExtensionFactory):
    """Offers `permessage-deflate; client_max_window_bits` as the board's library does, and can't inflate either."""

    name = ExtensionName("permessage-deflate")

    def get_request_params(self) -> Sequence[ExtensionParameter]:
        return [("client_max_window_bits", None)]

    def process_response_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[Extension]
    ) -> Extension:
        raise NegotiationError("a board can't inflate")


async def open_connection(url: str, device_id: str, link: LinkParameters) -> ClientConnection:
    """Connect like a board that has `url` set up and that id. Raises DeviceError: one sentence that says why not."""
    if not url.endswith("/"):
        raise DeviceError(f"the URL {sanitize(url)} must end with / because a board appends its id to it")
    query = format_query(link)
    try:
        return await connect(
            f"{url}{quote(device_id, safe=':')}{'?' * bool(query)}{query}",
            compression=None,
            extensions=[_CompressionOffer()],
            proxy=None,
            open_timeout=_OPEN_S,
            close_timeout=_CLOSE_S,
            ping_interval=None,
            max_size=MAX_FRAME_BYTES,
            max_queue=1,  # what waits on the way from the socket to the queue counts for the server, not for the board
        )
    except InvalidStatus as error:
        raise DeviceError(f"{sanitize(url)} answered {_status(error)}") from error
    except NegotiationError as error:
        raise DeviceError(
            f"{sanitize(url)} accepted permessage-deflate, which a board offers but can't inflate ({sanitize(error)})"
        ) from error
    except (InvalidURI, InvalidHandshake, ValueError) as error:  # ValueError: a port or host name that can't be
        raise DeviceError(f"no connection to {sanitize(url)}: {sanitize(error)}") from error
    except TimeoutError as error:
        raise DeviceError(f"no connection to {sanitize(url)}: no answer within {_OPEN_S:g} s") from error
    except OSError as error:
        raise DeviceError(f"no connection to {sanitize(url)}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    # asyncio puts the address where the reason belongs; negative numbers are the resolver's, and no errno.
    number = error.errno or 0
    return os.strerror(number) if number > 0 else sanitize(error.strerror or error)


def _status(error: InvalidStatus) -> str:
    response = error.response
    body = sanitize((response.body or b"").decode("utf-8", "replace"))
    status = f"{response.status_code} {sanitize(response.reason_phrase)}"
    return f"{status} instead of a WebSocket{': ' * bool(body)}{body}"
