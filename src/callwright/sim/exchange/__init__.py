"""The far end of a call that we make: what answers it, as a tree of menus, announcements, queues and persons.

```
tree file ── Tree ── Walker: where the call is in it ── FarEnd: its samples, keys heard, and the book
```
"""

from __future__ import annotations

from callwright.sim.exchange.callee import Callee, read_callee
from callwright.sim.exchange.far_end import FarEnd

__all__ = ["Callee", "FarEnd", "read_callee"]
