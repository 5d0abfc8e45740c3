from datetime import date
from typing import Annotated

from yaya_plugin import Plugin, ToolError

plugin = Plugin("dates", "1.0.0", "tool")
Day = Annotated[str, "a date, as in 2026-11-26"]


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as err:
        raise ToolError(str(err), "validation") from err


@plugin.tool(kind="read")
def days_between(start: Day, end: Day, weekdays_only: bool = False) -> str:
    """Counts the days from one date to another, without the last."""
    first, last = day(start), day(end)
    count = (last - first).days
    if weekdays_only:
        days = range(min(first, last).toordinal(), max(first, last).toordinal())
        count = sum(date.fromordinal(n).weekday() < 5 for n in days) * (1 if count > 0 else -1)
    return f"{count} days"


plugin.run()
