"""What is known of one request on its way to a server. Pure: transports write it, whoever asked reads it.

The SDK tells its callers that a connection broke, not whether their own request had left by then. Its streams carry
the context of the sending task, so a variable of that context reaches the transport.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from dataclasses import dataclass

from echokit_py.errors import BackendError


@dataclass(slots=True)
class Delivery:
    """One request.

    Attributes:
        deadline: the loop's time after which nobody waits for the answer any more; the transport lets go of it then.
        sent: it may have reached the server. False again when it provably was not taken: the connection was refused,
            or the server answered that it doesn't know our session.
        broken: its answer broke off.
        failure: why there is no answer; None when that isn't known.
    """

    deadline: float = math.inf
    sent: bool = False
    broken: bool = False
    failure: BackendError | None = None


DELIVERY: ContextVar[Delivery | None] = ContextVar("mcp_delivery", default=None)


def current() -> Delivery:
    """The delivery of the running context; one that nobody reads where there is none."""
    return DELIVERY.get() or Delivery()
