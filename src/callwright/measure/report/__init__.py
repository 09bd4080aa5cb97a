"""A call, or a batch of them, as one HTML file that opens from disk and needs nothing else.

Pages are text in, text out: `call_page` and `batch_page`. Whatever comes from elsewhere is escaped where it is put in
(`markup`), and no card number is on them (`measure.course`). The same calls make the same bytes.
"""

from callwright.measure.report.batch import ShownAgainst, ShownBatch, ShownRun, batch_page
from callwright.measure.report.page import Assets, Shown, call_page

__all__ = ["Assets", "Shown", "ShownAgainst", "ShownBatch", "ShownRun", "batch_page", "call_page"]
