"""What the stand-in takes and how well it reads: `python -m measures.panels`, from the folder `sketch`."""
