"""Stories: what happened in a run that failed, and where it parts from the run without faults.

Guarantees
- A story shows no secret value.
- A story is a pure function of two traces, so the same schedule gives the same story.
- What both runs do is left out, except near a difference.
"""

from steersman.simulation.stories.page import PageContents as PageContents, story_page as story_page
from steersman.simulation.stories.story import Case as Case, Story as Story, stories_of as stories_of
