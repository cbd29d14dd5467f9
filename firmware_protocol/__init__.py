"""The wire protocol of EchoKit boards, without I/O: values, bytes, link parameters. Opens no socket and reads no clock.

SPEC.md describes the whole of it.
"""
