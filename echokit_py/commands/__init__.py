"""What the command line does, one module a command; those of one package (device, assemble, models) live there."""
