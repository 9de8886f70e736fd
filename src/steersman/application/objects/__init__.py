"""The objects that an application becomes. Pure: no IO.

Guarantees
- Every declaration affects an object, or an error or a warning names it.
- The same application gives equal objects. A service affects its own objects, and those that contain its address.
"""

from steersman.application.objects.translation import (
    application_objects as application_objects,
    object_warnings as object_warnings,
)
