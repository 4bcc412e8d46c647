"""The part of ComfyUI's V3 types that the nodes use, after its interface: names, parameters, and what it checks.

ComfyUI is no package of an index, so that it cannot be a dependency of the tests. What it refuses is refused here, too:
unknown parameters, an id that is used twice, a node without a schema, a result of another kind.
"""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar


class Input:
    """A value that a node takes."""

    io_type = ""

    def __init__(
        self,
        id: str,
        display_name: str | None = None,
        optional: bool = False,
        tooltip: str | None = None,
        lazy: bool | None = None,
        extra_dict: dict[str, Any] | None = None,
        raw_link: bool | None = None,
    ) -> None:
        self.id, self.display_name, self.optional, self.tooltip = id, display_name, optional, tooltip


class WidgetInput(Input):
    """A value that can be typed in."""

    def __init__(
        self,
        id: str,
        display_name: str | None = None,
        optional: bool = False,
        tooltip: str | None = None,
        *,
        default: Any = None,
        socketless: bool | None = None,
        force_input: bool | None = None,
    ) -> None:
        super().__init__(id, display_name, optional, tooltip)
        self.default, self.force_input = default, force_input


class Output:
    """A value that a node gives."""

    io_type = ""

    def __init__(
        self,
        id: str | None = None,
        display_name: str | None = None,
        tooltip: str | None = None,
        is_output_list: bool = False,
    ) -> None:
        self.id, self.display_name, self.tooltip, self.is_output_list = id, display_name, tooltip, is_output_list


class Image:
    """A batch of pictures: a tensor [frames, height, width, channels] with values in 0..1."""

    class Input(Input):
        io_type = "IMAGE"

    class Output(Output):
        io_type = "IMAGE"


class String:
    """A text."""

    class Input(WidgetInput):
        io_type = "STRING"

        def __init__(
            self,
            id: str,
            *,
            multiline: bool = False,
            placeholder: str | None = None,
            dynamic_prompts: bool | None = None,
            **rest: Any,
        ) -> None:
            super().__init__(id, **rest)
            self.multiline = multiline

    class Output(Output):
        io_type = "STRING"


class Int:
    """A whole number."""

    class Input(WidgetInput):
        io_type = "INT"

        def __init__(
            self, id: str, *, min: int | None = None, max: int | None = None, step: int | None = None, **rest: Any
        ) -> None:
            super().__init__(id, **rest)
            self.min, self.max = min, max

    class Output(Output):
        io_type = "INT"


class Float:
    """A number."""

    class Output(Output):
        io_type = "FLOAT"


@dataclass
class Schema:
    """What a node is called, takes and gives."""

    node_id: str
    display_name: str | None = None
    category: str = "sd"
    inputs: list[Input] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    description: str = ""
    is_input_list: bool = False
    is_output_node: bool = False
    is_deprecated: bool = False
    is_experimental: bool = False
    is_api_node: bool = False
    not_idempotent: bool = False
    enable_expand: bool = False

    def validate(self) -> None:
        """Refuse ids that are used twice, also between inputs and outputs."""
        ids = Counter([item.id for item in self.inputs] + [item.id for item in self.outputs])
        twice = [name for name, count in ids.items() if count > 1]
        if twice:
            raise ValueError(f"Ids must be unique, but {twice} are not.")


class NodeOutput:
    """What a node gives, in the order of its outputs, and what the page shows."""

    def __init__(
        self,
        *args: Any,
        ui: dict[str, Any] | None = None,
        expand: dict[str, Any] | None = None,
        block_execution: str | None = None,
    ) -> None:
        self.args, self.ui, self.expand, self.block_execution = args, ui, expand, block_execution


class ComfyNode:
    """Base of the nodes. `call` does what the executor does with one."""

    SCHEMA: ClassVar[Schema]

    @classmethod
    def define_schema(cls) -> Schema:
        """Return the schema."""
        raise NotImplementedError

    @classmethod
    def execute(cls, **kwargs: Any) -> NodeOutput:
        """Do the work."""
        raise NotImplementedError

    @classmethod
    def GET_SCHEMA(cls) -> Schema:
        """Return the schema, checked, as ComfyUI does when it registers a node."""
        for name in ("define_schema", "execute"):
            if not any(name in base.__dict__ for base in cls.__mro__ if base is not ComfyNode):
                raise TypeError(f"No {name} function was defined for node class {cls.__name__}.")
        cls.SCHEMA = cls.define_schema()
        cls.SCHEMA.validate()
        return cls.SCHEMA

    @classmethod
    def call(cls, **values: Any) -> tuple[Any, ...]:
        """Execute the node with its inputs, defaults where none is connected, and give its outputs."""
        schema = cls.GET_SCHEMA()
        known = {item.id: item for item in schema.inputs}
        assert set(values) <= set(known), set(values) - set(known)
        for name, item in known.items():
            default = getattr(item, "default", None)
            assert name in values or item.optional or default is not None, f"Required input is missing: {name}"
            if name not in values and default is not None:
                values[name] = default
        assert set(inspect.signature(cls.execute).parameters) == set(known)
        made = cls.execute(**values)
        if not isinstance(made, NodeOutput):
            raise TypeError(f"Invalid return type from node: {type(made)}")
        assert len(made.args) == len(schema.outputs)
        return made.args
