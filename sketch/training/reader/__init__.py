"""Training of the embedded sketch reader: draw, label, train, calibrate, measure, export.

Design choices. The renderer knows where everything is, so the reader learns dense maps (a peak per head or prop)
instead of one label a picture: it needs far less data and says who does what. Rules of legibility are written once
(`labels`) and used for training and measuring alike. Nothing but pixels goes in.
"""
