"""Make IAM documents from a lake.yaml alone: the stacks attach them and ``lakewriter policy`` prints them."""
