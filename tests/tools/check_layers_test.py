#!/usr/bin/env python3
"""The layers of this tree, and that tools/check-layers finds what breaks them. Argument: the tree."""
import os
import subprocess
import sys
import tempfile
import unittest

TREE = sys.argv.pop(1)


def check(directory):
    done = subprocess.run([os.path.join(TREE, "tools", "check-layers"), directory],
                          capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def check_files(files):
    with tempfile.TemporaryDirectory() as place:
        for path, text in files.items():
            os.makedirs(os.path.join(place, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(place, path), "w") as out:
                out.write(text)
        return check(place)


class Layers(unittest.TestCase):
    def test_every_include_of_this_tree_leads_downwards(self):
        self.assertEqual(check(TREE), (0, ["every #include leads downwards"]))

    def test_one_that_leads_upwards_is_named(self):
        status, said = check_files({"drivers/link/link.hpp": '#pragma once\n#include "drivers/port/port.hpp"\n',
                                    "drivers/port/port.hpp": '#include "drivers/link/link.hpp"\n'})
        self.assertEqual(status, 1)
        self.assertEqual(said, ["drivers/link/link.hpp:2: drivers/link may not use drivers/port: "
                                '#include "drivers/port/port.hpp"'])

    def test_so_is_one_that_leads_sideways_or_out_of_the_product(self):
        status, said = check_files({
            "drivers/mbcf/impl/target.hpp": '#include "drivers/startx_emul/niu.hpp"\n',
            "libvipl/core/vi.cpp": '  #  include "tests/vipl/node.hpp"\n',
            "drivers/sim/quiet.cpp": '// #include "libmpi_lite/core/comm.hpp"\n#include <vector>\n'})
        self.assertEqual(status, 1)
        self.assertEqual([line.split(":")[0] for line in said],
                         ["drivers/mbcf/impl/target.hpp", "libvipl/core/vi.cpp"])

    def test_a_new_folder_has_to_be_put_into_its_place(self):
        status, said = check_files({"drivers/roce/device.hpp": "#pragma once\n"})
        self.assertEqual(status, 1)
        self.assertIn("drivers/roce is in no list of layers", said[0])


unittest.main()
