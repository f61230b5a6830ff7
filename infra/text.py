"""Format values for sentences."""

from datetime import timedelta


def format_hours(span: timedelta) -> str:
    """Format a time span as ``12 h`` or ``1 h 30 min``."""
    whole, minutes = divmod(round(span.total_seconds() / 60), 60)
    return " ".join(part for part in (f"{whole} h" if whole else "", f"{minutes} min" if minutes else "") if part)
