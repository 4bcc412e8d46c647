"""What `consistory` and `storydiffusion` have in common: frames whose self-attention reads tokens of other frames."""
