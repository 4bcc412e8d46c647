"""Training scripts that make what the package ships. They are not part of the wheel."""
