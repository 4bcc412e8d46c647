"""Token grids: the UNet halves its latent, rounding up, so a layer's token count says which grid it works on."""

from __future__ import annotations

__all__ = ["Grid", "grid_of", "halvings"]

Grid = tuple[int, int]


def grid_of(tokens: int, latent: Grid) -> Grid:
    """The (height, width) of the grid of `tokens` tokens inside a UNet whose latent is `latent` (height, width).

    Raises:
        ValueError: no halving of the latent has that many tokens.
    """
    height, width = latent
    while height * width > tokens:
        height, width = (height + 1) // 2, (width + 1) // 2
        if (height, width) == (1, 1):
            break
    if height * width != tokens:
        raise ValueError(f"{tokens} tokens are no halving of a latent of {latent[0]}x{latent[1]}")
    return height, width


def halvings(latent: Grid, count: int) -> list[Grid]:
    """The grids of `latent` halved 0 to `count` times."""
    grids = [latent]
    for _ in range(count):
        height, width = grids[-1]
        grids.append(((height + 1) // 2, (width + 1) // 2))
    return grids
