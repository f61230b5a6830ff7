"""The stacks, the bundle and the review of one stage."""

import sys
from pathlib import Path

# requirements.txt pins what a deployment needs and installs no lakewriter, which lies beside this folder, in job/.
# First on the path, so that stacks and bundle come from one tree whichever release is installed besides.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "job"))
