"""One atomic commit to a Hub repo: only what differs, planned anew when somebody else came first, never twice."""

from __future__ import annotations

import contextlib
import difflib
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from bench_datasets._compat import was_committed
from bench_datasets.faults import BenchError
from bench_datasets.hub import client
from bench_datasets.hub.repo import Content, Head, size_of

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationCopy, HfApi

__all__ = ["Change", "CommitResult", "Content", "Files", "Head", "Plan", "commit", "repo_url"]

_TEXT_LIMIT = 1 << 20
_SHOWN = 40
"""Bytes of a text that is compared line by line, and lines of a difference in data that are shown."""


Files: TypeAlias = Mapping[str, Content] | Callable[[Head], Mapping[str, Content]]
"""Files by path in the repo, or a function that makes them from what is there."""


@dataclass(frozen=True)
class Change:
    """One file that a commit changes.

    Attributes:
        path: in the repo.
        action: `add`, `change` or `delete`.
        size: bytes afterwards.
        diff: unified diff, for text; `None` for anything else.
    """

    path: str
    action: Literal["add", "change", "delete"]
    size: int
    diff: str | None = None


@dataclass(frozen=True)
class Plan:
    """The changes that a commit would make; nothing was written.

    Attributes:
        repo_id, repo_type: of the repo.
        parent: the commit it would follow; `None` where the repo would be made.
        message: of the commit.
        create_pr: whether it would be proposed as a pull request.
        changes: by path; empty where all is there already.
        unseen: why what is there could not be looked at: all of it then counts as new. Empty where it could.
    """

    repo_id: str
    repo_type: str
    parent: str | None
    message: str
    create_pr: bool
    changes: list[Change] = field(default_factory=list)
    unseen: str = ""

    def __str__(self) -> str:
        how = "pull request to" if self.create_pr else "commit to" if self.parent else "for" if self.unseen else "new"
        how = f"not compared with what is there, {how}" if self.unseen else how
        lines = [f"{how} {self.repo_type} {self.repo_id}: {self.message}"]
        for change in self.changes:
            lines.append(f"  {change.action} {change.path} ({change.size:,} bytes)")
        for change in self.changes:
            diff = [] if change.diff is None else change.diff.splitlines()
            shown = len(diff) if change.path.endswith((".md", ".yaml")) else _SHOWN  # what people read, in full
            more = [f"... {len(diff) - shown:,} more lines"] if len(diff) > shown else []
            lines += ["", *diff[:shown], *more] if diff else []
        return "\n".join(lines if self.changes else [*lines, "  nothing: all of it is there"])


@dataclass(frozen=True)
class CommitResult:
    """The changes that a commit made.

    Attributes:
        repo_id, repo_type: of the repo.
        sha: the commit that holds all of it: the new one, or the one that was there.
        url: of that commit.
        paths: files that were written or deleted; empty where all was there already.
        created: whether the repo was made.
        pr_url, pr_num: of the pull request, where one holds it.
    """

    repo_id: str
    repo_type: str
    sha: str
    url: str
    paths: tuple[str, ...]
    created: bool = False
    pr_url: str | None = None
    pr_num: int | None = None


def commit(
    repo_id: str,
    repo_type: str,
    files: Files,
    message: str,
    *,
    description: str = "",
    token: str | None = None,
    create: bool = False,
    create_pr: bool = False,
    private: bool | None = None,
    beside: bool = False,
    space_sdk: str | None = None,
    delete: Iterable[str] = (),
    parent: str | None = None,
    dry_run: bool = False,
    unseen: str = "",
) -> CommitResult | Plan:
    """Make a repo hold these files, in one commit that is there in full or not at all.

    Only what differs is sent; where nothing does, no commit is made, so that a run after a failure, or a second one,
    finishes the work and no more. When somebody else's commit lands first, everything is planned anew from it.
    Requests that fail on the way are made again after a while, as long as the Hub asks for.

    Args:
        repo_id: `ORG/NAME`.
        repo_type: `model`, `dataset` or `space`.
        files: contents by path in the repo; or a function of the repo's `Head` that gives them, called anew for each
            plan: the way to merge with what is there.
        message: the commit's title, or the pull request's: an open one of the same author and title is gone on with, as
            long as it can be merged; one that no longer can gives way to a fresh one, and is closed with a word.
        description: more words.
        token: to sign in with; by default the user's own.
        create: make the repo where it is missing.
        create_pr: propose it as a pull request.
        private: whether a repo that is made is private; by default as its owner has set.
        beside: make it even where a repo of another kind has that name.
        space_sdk: what runs in a Space that is made.
        delete: paths to delete, a folder's ends in `/`; what is not there is as wanted.
        parent: the commit that must be the repo's last; by default whichever is.
        dry_run: write nothing and give the plan; where the Hub can't be reached, one that was compared with nothing.
        unseen: of a dry run: why the Hub is known to be out of reach, so that it is not asked again.

    Returns:
        What was done, or for a dry run the plan.

    Raises:
        BenchError: one line about what stands in the way: the token, the name, room, the network, the files.
    """
    work = _Work(client.check_name(repo_id, "repo"), repo_type, files, message, description, create, create_pr, private)
    work.delete, work.parent, api = tuple(delete), parent, client.connect(token)
    work.beside, work.space_sdk = beside, space_sdk
    if dry_run and unseen:
        return work.plan(api, unseen)
    conflicts = failures = 0
    with client.quietly():
        while True:
            begun = time.monotonic()
            try:
                return work.plan(api) if dry_run else work.run(api)
            except BenchError:
                raise
            except Exception as error:
                if not dry_run and client.status_of(error) in (409, 412) and conflicts < client.CONFLICTS:
                    conflicts += 1
                    # Room for the others: some times what an attempt takes, more of them the oftener it fails.
                    took = time.monotonic() - begun
                    wait: float | None = random.uniform(0.0, min(30.0, took * 2.0 ** min(conflicts, 3)))
                else:
                    failures += 1
                    wait = client.seconds_to_wait(error, failures)
                if wait is None:
                    told = client.explain(error, repo_id, repo_type, api)
                    if dry_run and isinstance(told, client.UnreachableError):
                        return work.plan(api, str(told))
                    raise told from None
                again = error
            client.wait_for(again, wait, api)


@dataclass
class _Work:
    """The changes to make; each attempt starts from the repo's current state."""

    repo_id: str
    repo_type: str
    files: Files
    message: str
    description: str
    create: bool
    create_pr: bool
    private: bool | None
    delete: tuple[str, ...] = ()
    parent: str | None = None
    beside: bool = False
    space_sdk: str | None = None
    created: bool = False
    kept: dict[str, bytes] = field(default_factory=dict)
    stale: list[int] = field(default_factory=list)
    """Open pull requests for the same that can't be merged any more."""

    def run(self, api: HfApi) -> CommitResult:
        """Make the changes, then close the pull requests that they replace."""
        done = self.send(api)
        instead = "what it proposes is there" if done.pr_num is None else f"#{done.pr_num} proposes the same anew"
        words, kind = f"The repo has moved on, and this can't be merged any more: {instead}.", self.repo_type
        for number in self.stale:
            # The fresh one is there to be merged; one too many, that can't be, is no failure.
            with contextlib.suppress(Exception):
                api.comment_discussion(self.repo_id, number, words, repo_type=kind)
                api.change_discussion_status(self.repo_id, number, "closed", repo_type=kind)
        return done

    def send(self, api: HfApi) -> CommitResult:
        """Make the commit, if anything differs."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        head, number = self.look(api)
        if head.sha is None:
            api.create_repo(
                self.repo_id,
                repo_type=self.repo_type,
                private=self.private,
                exist_ok=True,
                space_sdk=self.space_sdk,
            )
            self.created = True
            head, number = self.look(api)
        wanted, gone = self.compare(head)
        if not wanted and not gone:
            return self.result(api, str(head.sha), (), number)
        operations: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = [
            CommitOperationAdd(path, content.encode() if isinstance(content, str) else content)
            for path, content in wanted.items()
        ]
        operations += [CommitOperationDelete(path, is_folder=False) for path in gone]
        done = api.create_commit(
            self.repo_id,
            operations,
            commit_message=self.message,
            commit_description=self.description,
            repo_type=self.repo_type,
            revision=None if number is None else f"refs/pr/{number}",
            create_pr=self.create_pr and number is None,
            parent_commit=head.sha,
        )
        added = [operation for operation in operations if isinstance(operation, CommitOperationAdd)]
        if added and not any(was_committed(operation) for operation in added):
            # Somebody else has just sent the same, and the client saw in time that nothing was left to do.
            head, number = self.look(api)
            return self.result(api, str(head.sha), (), number)
        return self.result(api, done.oid, (*wanted, *gone), number if number is not None else done.pr_num)

    def plan(self, api: HfApi, unseen: str = "") -> Plan:
        """The changes that would be made; against an empty repo if the Hub can't be reached."""
        head = Head(api, self.repo_id, self.repo_type, None) if unseen else self.look(api)[0]
        wanted, gone = self.compare(head)
        changes = [_change(head, path, content) for path, content in wanted.items()]
        changes += [Change(path, "delete", 0) for path in gone]
        return Plan(self.repo_id, self.repo_type, head.sha, self.message, self.create_pr, changes, unseen)

    def look(self, api: HfApi) -> tuple[Head, int | None]:
        """The repo as it is, and the number of the pull request that this work goes on with."""
        from huggingface_hub.errors import RepositoryNotFoundError

        try:
            sha = api.repo_info(self.repo_id, repo_type=self.repo_type).sha
        except RepositoryNotFoundError as error:
            if not self.create or client.status_of(error) == 401:
                raise
            other = None if self.beside else client.other_kind(self.repo_id, self.repo_type, api)
            if other is not None:
                raise BenchError(
                    f"{self.repo_id}: the name is taken by a {other}, expected a {self.repo_type} or a free name;"
                    f" try {self.repo_id}-results"
                ) from None
            return Head(api, self.repo_id, self.repo_type, None), None
        if self.parent is not None and sha != self.parent:
            raise BenchError(f"{self.repo_id}: expected {self.parent} as the last commit, found {sha}; look again")
        number = self.open_pull_request(api) if self.create_pr else None
        if number is not None:
            revision = f"refs/pr/{number}"
            sha = api.repo_info(self.repo_id, repo_type=self.repo_type, revision=revision).sha
        return Head(api, self.repo_id, self.repo_type, sha, self.kept), number

    def open_pull_request(self, api: HfApi) -> int | None:
        """The newest open pull request of the same author and title that can be merged; others are `stale`."""
        user = api.whoami()["name"]
        found = api.get_repo_discussions(
            self.repo_id,
            repo_type=self.repo_type,
            author=user,
            discussion_type="pull_request",
            discussion_status="open",
        )
        self.stale = []
        numbers = [one.num for one in found if one.title == self.message and one.author == user]
        for number in sorted(numbers, reverse=True):
            if not api.get_discussion_details(self.repo_id, number, repo_type=self.repo_type).conflicting_files:
                return number
            self.stale.append(number)
        return None

    def compare(self, head: Head) -> tuple[dict[str, Content], list[str]]:
        """Compare the wanted files with a repo's: files that differ, and files to be removed."""
        files = self.files(head) if callable(self.files) else self.files
        wanted = {path: content for path, content in sorted(files.items()) if not head.holds(path, content)}
        folders = tuple(one for one in self.delete if one.endswith("/"))
        gone = [p for p in head.files if p not in files and (p in self.delete or (folders and p.startswith(folders)))]
        return wanted, gone

    def result(self, api: HfApi, sha: str, paths: tuple[str, ...], number: int | None) -> CommitResult:
        place = repo_url(api.endpoint, self.repo_id, self.repo_type)
        pull = None if number is None else f"{place}/discussions/{number}"
        url = f"{place}/commit/{sha}"
        return CommitResult(self.repo_id, self.repo_type, sha, url, paths, self.created, pull, number)


def repo_url(endpoint: str, repo_id: str, repo_type: str) -> str:
    """A repo's page.

    Example:
        >>> repo_url("https://huggingface.co", "acme/results", "dataset")
        'https://huggingface.co/datasets/acme/results'
    """
    return f"{endpoint}/{'' if repo_type == 'model' else repo_type + 's/'}{repo_id}"


def _change(head: Head, path: str, content: Content) -> Change:
    old = head.files.get(path)
    size = size_of(content)
    small = size <= _TEXT_LIMIT and (old is None or (old[0] <= _TEXT_LIMIT and old[2] is None))
    diff = _diff(head.read(path) or b"", content, path) if small else None
    return Change(path, "change" if old else "add", size, diff)


def _diff(before: bytes, content: Content, path: str) -> str | None:
    after = content.read_bytes() if isinstance(content, Path) else content
    try:
        old, new = before.decode(), after if isinstance(after, str) else after.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in old + new:
        return None
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(lines)
