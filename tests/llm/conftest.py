"""What all tests of the language models' clients need."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from echokit_py.http import HttpClient


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    made = HttpClient(connect_s=5)
    yield made
    await made.close()
