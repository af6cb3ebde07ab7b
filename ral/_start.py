"""What the launcher runs, under `-I -S`: puts the directory that holds the package on the path, then starts ral."""

import sys

sys.path.append(__file__.rpartition("/ral/")[0])

from ral.cli import main

main()
