"""What `consistory` and `storydiffusion` have in common: frames whose self-attention reads tokens of other frames.

*Sources* are the frames (anchors, portraits) that others read; they are denoised together. *Readers* are denoised one
at a time, in step with the sources or, later, from a bank of what the sources showed. A reader never changes a
source, so both ways give the same picture.
"""
