"""Regressions: schedules that failed once, kept in files and replayed.

Guarantees
- A file replays the same run as long as the program sends the same requests.
- Keeping a schedule again changes nothing; keeping another one never overwrites a file.
"""

from steersman.simulation.regressions.files import (
    Regression as Regression,
    keep_finding as keep_finding,
    read_regression as read_regression,
    regressions_in as regressions_in,
)
from steersman.simulation.regressions.replay import Replay as Replay, replayed as replayed
