"""The subcommands of ``ktir``, one a file."""
