"""The HTTP client that all back ends share. Knows no back end's format."""

from echokit_py.http.answers import context_exceeded, describe
from echokit_py.http.client import HttpClient, read_body

__all__ = ["HttpClient", "context_exceeded", "describe", "read_body"]
