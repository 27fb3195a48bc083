"""On the path of the commands that the tests start: puts the fake job in the place of the real one."""

import sys

import fake_job

sys.modules["gpbench.train.job"] = fake_job
