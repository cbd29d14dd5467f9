"""A simulated board, faithful to firmware 0.3.2: what `echokit-py device` and the tests talk to a server with."""
