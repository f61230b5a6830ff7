"""IAM documents as pure functions of a lake.yaml: what the stacks attach and ``lakewriter policy`` prints."""
