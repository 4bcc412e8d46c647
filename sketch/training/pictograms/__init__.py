"""Packs the pictograms of the sketch from the Fluent emoji set and draws contact sheets to review them by eye."""
