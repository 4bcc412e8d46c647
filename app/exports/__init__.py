"""Boards taken to other tools: documents, books, pictures, films, edit timelines and other programs' projects."""

from katha.app.exports.board import ExportBoard, ExportFrame, ExportOptions, read_sheet
from katha.app.exports.formats import ARCHIVES, FORMATS, export

__all__ = ["ARCHIVES", "FORMATS", "ExportBoard", "ExportFrame", "ExportOptions", "export", "read_sheet"]
