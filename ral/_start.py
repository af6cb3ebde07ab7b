"""What the launcher runs, under `-I -S`: takes the modules from the bundle when there is one, then starts ral."""

import gc
import sys

gc.disable()  # a start makes only what stays; a session turns it on
here = __file__.rpartition("/")[0]
sys.path.append(here.rpartition("/")[0])
try:
    import marshal
    from _frozen_importlib_external import MAGIC_NUMBER

    with open(here + "/_bundle.bin", "rb", 0) as file:
        data = file.read()
    if data[:4] == MAGIC_NUMBER:  # else it was built with another interpreter, and the modules come from their files
        finder, modules = marshal.loads(data[4:])
        exec(finder, {"directory": here, "EAGER": modules})
except OSError:
    pass

from ral.cli import main

main()
