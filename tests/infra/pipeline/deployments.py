"""``deployment`` of lake.yaml for tests."""

from typing import Any

HOURLY = {"cron": "0 * * * ? *", "timezone": "Europe/Berlin"}
EMAIL = "lake@example.org"
ALL: dict[str, Any] = {
    "schedule": {"rate": "6 hours", "flexible_minutes": 10, "enabled": False},
    "encryption": "SSE-KMS",
    "alarms": {"email": EMAIL, "no_success_hours": 48, "queued_minutes": 15},
    "network": {"subnet_ids": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"], "security_group_ids": ["sg-0a1b2c3d"]},
    "permissions_boundary_arn": "arn:aws:iam::123456789012:policy/Boundary",
    "role_path": "/lake/",
    "bootstrap_qualifier": "acme",
    "log_retention_days": 90,
    "spark": {
        "conf": {"spark.driver.memory": "6G", "spark.custom": "a b", "spark.driver.extraJavaOptions": "-Xss4m"},
        "attempts": 2,
    },
}
"""Everything that can be asked for, but for a topic that is there."""
