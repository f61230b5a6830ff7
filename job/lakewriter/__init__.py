"""An S3 data lake destination that a platform team owns."""

__version__ = "0.2.0.dev0"
