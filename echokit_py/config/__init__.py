"""The configuration file: `load.load` reads it, `settings` are the types. Starts and builds nothing."""
