"""The built-in samples: drawn by our own code on first use, with answers of three imaginary models."""

from bench_datasets.samples.instancebench import instancebench_sample_dir
from bench_datasets.samples.instancebench_models import instancebench_sample_predictions
from bench_datasets.samples.models import SAMPLE_MODELS, pbench_sample_predictions
from bench_datasets.samples.pbench import pbench_sample_dir
from bench_datasets.samples.pvsg import pvsg_sample_dir
from bench_datasets.samples.pvsg_models import pvsg_sample_predictions

__all__ = [
    "SAMPLE_MODELS",
    "instancebench_sample_dir",
    "instancebench_sample_predictions",
    "pbench_sample_dir",
    "pbench_sample_predictions",
    "pvsg_sample_dir",
    "pvsg_sample_predictions",
]
