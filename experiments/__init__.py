"""Studies of accuracy; each writes its page.

They run in as many processes as there are cores, each with one thread of linear algebra: where
several share few cores, the threads of small products wait for each other ten times as long as
they work. What is measured in time sets its own.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
