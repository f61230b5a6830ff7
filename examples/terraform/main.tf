# Deploys the templates of a stage by Terraform. Before: synth with deployment.artifact_bucket in the file, then
#   lakewriter publish cdk.out --region us-east-1 --json > published.json
# which uploads the job and the templates, and says their URLs.

terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 3.39" }
  }
}

variable "published" {
  description = "What lakewriter publish --json has printed."
  type        = string
  default     = "published.json"
}

variable "name" {
  description = "The beginning of both stacks' names: lakewriter-PIPELINE-STAGE."
  type        = string
}

variable "role_arn" {
  description = "The role that CloudFormation works with; null for the rights of whoever runs Terraform."
  type        = string
  default     = null
}

locals {
  templates = jsondecode(file(var.published)).templates
}

resource "aws_cloudformation_stack" "destination" {
  name         = "${var.name}-destination"
  template_url = local.templates["${var.name}-destination"]
  capabilities = ["CAPABILITY_NAMED_IAM"]
  iam_role_arn = var.role_arn

  lifecycle {
    # The bucket and its key are kept, but the roles would go.
    prevent_destroy = true
  }
}

resource "aws_cloudformation_stack" "pipeline" {
  name         = "${var.name}-pipeline"
  template_url = local.templates["${var.name}-pipeline"]
  capabilities = ["CAPABILITY_NAMED_IAM"]
  iam_role_arn = var.role_arn
  depends_on   = [aws_cloudformation_stack.destination]
}

output "state_machine_arn" {
  value = aws_cloudformation_stack.pipeline.outputs["StateMachineArn"]
}
