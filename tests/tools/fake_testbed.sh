#!/bin/sh
# In the place of tools/viaduct-testbed, for tests of what calls it: does nothing, and succeeds.
