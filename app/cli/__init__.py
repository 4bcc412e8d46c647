"""The command line: one verb a module, `--json` for machines, exit codes 0 fine, 1 failed, 2 wrong use."""
