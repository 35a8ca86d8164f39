"""Publishing the metrics as Spaces, where `evaluate.load("org/pbench")` finds them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench_datasets._util.grid import render_html
from bench_datasets.benchmark import BENCHMARKS, get_benchmark
from bench_datasets.faults import BenchError
from bench_datasets.hub import cards
from bench_datasets.hub.client import check_name
from bench_datasets.hub.commits import CommitResult, Content, Plan, commit
from bench_datasets.hub.templates import over_ours

_MODULE = '''"""{title} for `evaluate.load`: everything stands in the package, so that both give the same numbers."""

import importlib

NEEDED = "The {title} metric needs the package bench-datasets: pip install bench-datasets"

try:
    module = importlib.import_module("{module}")
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "bench_datasets":
        raise
    raise ImportError(NEEDED) from None

{kind} = module.{kind}
'''

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }} metric</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; color: #20242a }
pre { background: #f4f5f7; padding: 1rem; border-radius: .5rem; overflow-x: auto }
table { border-collapse: collapse }
td, th { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #dde1e6 }
</style>
<h1>{{ title }} metric</h1>
<p>{{ about }}</p>
<pre>pip install bench-datasets

import evaluate
metric = evaluate.load("{{ repo }}")</pre>
<table>
<tr><th>protocol</th><th>meaning</th><th>headline</th></tr>
{% for row in rows -%}
<tr><td>{{ row.name }}</td><td>{{ row.meaning }}</td><td><code>{{ row.headline }}</code></td></tr>
{% endfor -%}
</table>
<p>The card says what <code>metric.compute</code> takes and gives.</p>
</html>
"""


def publish_metrics(
    benchmarks: Sequence[str] = (),
    *,
    org: str,
    private: bool | None = None,
    dry_run: bool = False,
    token: str | None = None,
) -> list[CommitResult | Plan]:
    """Publish metrics, one Space each, so that `evaluate.load("ORG/NAME")` gives them where the package is installed.

    Args:
        benchmarks: their names; all of this package for none.
        org: whose Spaces they are, a user or an organisation.
        private: whether Spaces that are made are private; by default as their owner has set.
        dry_run: send nothing, and give the plans.
        token: to sign in with; by default the user's own.

    Returns:
        What was done for each, or for a dry run the plans.

    Raises:
        BenchError: a benchmark has no `evaluate` module; or the Hub won't take one; those before it are published.

    Example:
        >>> publish_metrics(["pbench"], org="me")                                            # doctest: +SKIP
    """
    if "/" in org or not org:
        raise BenchError(f"org: expected the name of a user or an organisation, got {org!r}")
    names = list(dict.fromkeys(get_benchmark(name).name for name in benchmarks)) or list(BENCHMARKS.own)
    for name in names:
        if name not in BENCHMARKS.own:
            raise BenchError(
                f"{name}: there is no `evaluate` module of its own to publish; evaluate.load({name!r}) works where its"
                " package is installed and bench_datasets is imported"
            )
    found: list[CommitResult | Plan] = []
    for name in names:
        repo = check_name(f"{org}/{name}", "org")
        files = metric_files(name, repo)
        title = f"{get_benchmark(name).title} for evaluate.load"
        found.append(
            commit(
                repo,
                "space",
                partial(over_ours, files=files),
                title,
                token=token,
                create=True,
                private=private,
                beside=True,
                space_sdk="static",
                dry_run=dry_run,
                unseen=next((reason for one in found if (reason := getattr(one, "unseen", ""))), ""),
            )
        )
    return found


def metric_files(name: str, repo: str) -> dict[str, Content]:
    """A metric Space's files.

    Args:
        name: the benchmark.
        repo: the Space's name; its last part is the module's.

    Returns:
        Contents by path: the module, the card, the page and what is to be installed.
    """
    from bench_datasets import __version__

    benchmark = get_benchmark(name)
    page = render_html(
        _PAGE, title=benchmark.title, about=cards.about(benchmark), repo=repo, rows=list(cards.protocol_rows(benchmark))
    )
    return {
        f"{repo.split('/')[1]}.py": _MODULE.format(
            title=benchmark.title, module=f"bench_datasets.benchmarks.{name}.hf_evaluate", kind=name.capitalize()
        ),
        "README.md": cards.metric_card(name, repo),
        "index.html": page,
        "requirements.txt": f"bench-datasets>={__version__}\n",
    }
