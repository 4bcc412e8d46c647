"""Pages of comics, pages of picture books, and films cut into the frames of a board, with a file to correct by hand."""
