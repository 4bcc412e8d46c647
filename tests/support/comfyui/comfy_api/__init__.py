"""A stand-in for ComfyUI's package of that name, for the tests of `integrations/comfyui`."""
