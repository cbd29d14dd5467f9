"""Tools that the model may call: their interface, a registry in this process, the check of arguments."""
