"""Which questions steer and which report: held out by content, not by wording alone (Sec. B.7).

Questions that share a golden answer, or that ask the same dimension of the same transition, tell the same thing twice:
whoever has chosen a board by one has chosen it by the other. So they go to one half together, and what is divided are
the groups that such questions make. Within that, each half gets every dimension that it can, each transition a steering
question, and the halves about equally many of each dimension. What is asked but once is for reporting, unless a
transition would lose its only steering question; a story's one moral question always is (selection has no business with
the lesson of the whole).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from katha.eval_bridge.matching.match import normalise
from katha.jsonio import digest
from katha.schema import Question, Role

_HALVES: tuple[Role, ...] = ("steering", "reporting")
# What a division costs. A half without questions cannot be; the rest is by how much is lost.
_EMPTY, _MORAL_STEERS, _DIMENSION, _TRANSITION, _LONE_STEERS, _UNEVEN = 10_000, 300, 100, 30, 20, 1


def assign_roles(questions: Sequence[Question], seed: int = 42) -> list[Question]:
    """`questions` of one or more stories with `role` filled in; roles that are there already stay."""
    stories: dict[str, list[Question]] = {}
    for question in questions:
        stories.setdefault(question.story_id, []).append(question)
    done: dict[tuple[str, str], Role] = {}
    for story, members in stories.items():
        done |= {(story, name): role for name, role in _divided(members, seed).items()}
    return [
        item if item.role else item.model_copy(update={"role": done[item.story_id, item.question_id]})
        for item in questions
    ]


def twins(questions: Iterable[Question]) -> list[tuple[Question, Question]]:
    """Return each reporting question of one story with a steering question that asks the same by its content: the same
    golden answer, or the same dimension of the same transition."""
    steering: dict[tuple[object, ...], Question] = {}
    reporting = []
    for item in questions:
        if item.role == "steering":
            steering |= dict.fromkeys(_content(item), item)
        elif item.role == "reporting":
            reporting.append(item)
    found = []
    for item in reporting:
        twin = next((steering[key] for key in _content(item) if key in steering), None)
        if twin is not None:
            found.append((item, twin))
    return found


def _content(item: Question) -> list[tuple[object, ...]]:
    """Return what a question is about, as keys that questions with the same content share."""
    keys: list[tuple[object, ...]] = [("answer", normalise(item.gold_answer))]
    if item.target_transition is not None and item.question_type != "moral":
        keys.append(("asked", item.target_transition, item.question_type))
    return keys


def _groups(members: Sequence[Question]) -> list[list[Question]]:
    """Return the questions that must stay together, in the order of `members`."""
    owner: dict[tuple[object, ...], list[Question]] = {}
    groups: list[list[Question]] = []
    for item in members:
        joined = [group for group in groups if any(owner.get(key) is group for key in _content(item))]
        group = [*(one for other in joined for one in other), item]
        groups = [other for other in groups if not any(other is one for one in joined)] + [group]
        for one in group:
            owner |= dict.fromkeys(_content(one), group)
    return groups


def _divided(members: Sequence[Question], seed: int) -> Mapping[str, Role]:
    """Return the roles of one story's questions by id: groups are added largest first, then improved one by one."""
    ranked = sorted(members, key=lambda item: digest([seed, item.story_id, item.question_id]))
    groups = sorted(_groups(ranked), key=len, reverse=True)
    roles: dict[str, Role] = {item.question_id: item.role for item in members if item.role is not None}
    open_ones = [[item for item in group if item.role is None] for group in groups]
    for group, left in zip(groups, open_ones, strict=True):
        told = [item.role for item in group if item.role is not None]
        placed = [item for other in groups for item in other if item.question_id in roles]
        costs = {half: _cost([*placed, *left], {**roles, **_all(left, half)}) for half in _HALVES}
        roles |= _all(left, told[0] if told else min(_HALVES, key=costs.__getitem__))
    movable = [left for group, left in zip(groups, open_ones, strict=True) if left and len(left) == len(group)]
    best = _cost(ranked, roles)
    for _ in range(len(movable)):  # each round lowers the cost, or is the last
        tried = [_moved(roles, [one]) for one in movable]
        tried += [
            _moved(roles, [one, two])
            for at, one in enumerate(movable)
            for two in movable[at + 1 :]
            if roles[one[0].question_id] != roles[two[0].question_id]
        ]
        found = min(tried, key=lambda other: _cost(ranked, other), default=roles)
        if _cost(ranked, found) >= best:
            break
        roles, best = found, _cost(ranked, found)
    return roles


def _all(group: Iterable[Question], half: Role) -> dict[str, Role]:
    return {item.question_id: half for item in group}


def _moved(roles: Mapping[str, Role], groups: Iterable[Sequence[Question]]) -> dict[str, Role]:
    """Return the roles with these groups in the other half."""
    changed = dict(roles)
    for group in groups:
        changed |= _all(group, "reporting" if roles[group[0].question_id] == "steering" else "steering")
    return changed


def _cost(members: Sequence[Question], roles: Mapping[str, Role]) -> int:
    """Return what is lost by a division, in whole numbers."""
    counts: dict[str, list[int]] = {}
    steered, asked = set(), set()
    for item in members:
        half = _HALVES.index(roles[item.question_id])
        counts.setdefault(item.question_type, [0, 0])[half] += 1
        if item.target_transition is not None and item.question_type != "moral":
            asked.add(item.target_transition)
            if not half:
                steered.add(item.target_transition)
    moral = counts.get("moral", [0, 0])
    # Without a reporting question there is no result at all; without a steering one the choice rests on the rest.
    empty = sum((half + 1) * (not any(number[half] for number in counts.values())) for half in (0, 1))
    alone = moral[0] if sum(moral) == 1 else 0
    lone = sum(number[0] for kind, number in counts.items() if kind != "moral" and sum(number) == 1)
    lacking = sum(not half for kind, number in counts.items() if sum(number) > 1 for half in number)
    uneven = sum((number[0] - number[1]) ** 2 for number in counts.values())
    return (
        _EMPTY * empty
        + _MORAL_STEERS * alone
        + _DIMENSION * lacking
        + _TRANSITION * len(asked - steered)
        + _LONE_STEERS * lone
    ) + _UNEVEN * (uneven + abs(sum(n[0] for n in counts.values()) - sum(n[1] for n in counts.values())))
