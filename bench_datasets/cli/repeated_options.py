"""A command whose options are given once each, unless they are made to be repeated."""

from __future__ import annotations

from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand

_INSTEAD = {
    "--predictions": "; score each file by itself with --out, then hold the runs against each other with `compare`",
    "--data": "; give the one place where the truth is",
}
"""What to do where an option was given twice, where that is not plain."""


class Once(TyperCommand):
    """Refuses options that are given twice and take one value: the last would count, and nobody would know."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Count before anything is taken."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(list(args))
            for param, times in Counter(order).items():
                single = param.param_type_name == "option" and not getattr(param, "multiple", False)
                if single and times > 1 and not getattr(param, "is_flag", False):
                    name = max(param.opts, key=len)
                    text = f"expected once, given {times} times{_INSTEAD.get(name, '')}"
                    raise typer.BadParameter(text, ctx=ctx, param_hint=f"'{name}'")
        rest: list[str] = super().parse_args(ctx, args)
        return rest
