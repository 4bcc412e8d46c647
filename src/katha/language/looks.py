"""Looks that exclude each other: a character is not small and big, nor grey and white."""

from __future__ import annotations

__all__ = ["EXCLUSIVE_LOOKS", "clash"]

EXCLUSIVE_LOOKS: tuple[frozenset[str], ...] = (
    frozenset({"small", "big"}),
    frozenset({"thin", "fat"}),
    frozenset({"white", "black", "brown", "grey", "red", "golden", "green", "blue"}),
    frozenset({"red_scarf", "blue_scarf", "green_cap", "yellow_hat", "crowned"}),
    frozenset({"spotted", "striped"}),
)


def clash(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether two sets of looks cannot be the same character's."""
    for group in EXCLUSIVE_LOOKS:
        one, two = group.intersection(first), group.intersection(second)
        if one and two and not one & two:
            return True
    return False
