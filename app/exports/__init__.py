"""Boards taken to other tools: documents, books, pictures, films, edit timelines and other programs' projects."""

from katha.app.exports.board import ExportOptions, Sheet, Shot, read_sheet
from katha.app.exports.formats import ARCHIVES, FORMATS, export

__all__ = ["ARCHIVES", "FORMATS", "ExportOptions", "Sheet", "Shot", "export", "read_sheet"]
