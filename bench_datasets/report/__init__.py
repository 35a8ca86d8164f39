"""Reports: one self-contained HTML page for a run or a comparison, and plots of what models can do."""

from bench_datasets.report.profile import profile
from bench_datasets.report.write import write_report

__all__ = ["profile", "write_report"]
