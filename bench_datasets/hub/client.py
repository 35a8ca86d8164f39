"""Speaking with the Hub: the client, its failures as one line each, and how long to wait before trying again."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from bench_datasets.data.source import check_token
from bench_datasets.faults import BenchError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")

_log = logging.getLogger("bench_datasets.hub")
"""Told what is waited for; the command line shows it."""


class UnreachableError(BenchError):
    """The Hub gave no answer, or may not be asked."""


ATTEMPTS = 5
"""How often a request that failed on the way is made in all."""

SENDS = 6
"""How often the Hub's own client sends a file in all."""

CONNECTS = 3
"""How often a connection is tried in all that nobody accepts."""

CONFLICTS = 100
"""How often a commit is planned anew because somebody else's landed first."""

LONGEST_WAIT = 330.0
"""Seconds; the Hub's rate limits last five minutes. A longer `Retry-After` is told instead of waited for."""

_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_NO_ROOM = re.compile(r"storage|quota|limit|too large|exceed|payment|billing", re.IGNORECASE)
_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{16,}|(?<=Bearer )\S+")
_NETWORK = re.compile(r"connect|connection|timed? ?out|dns|error sending request|network", re.IGNORECASE)
_STORE = re.compile(r"HTTP status \w+ error \((\d{3})")
"""How the client of the store for large files, which has errors of its own, words an answer's status."""


def endpoint() -> str:
    """The Hub's address: `HF_ENDPOINT` as it is now, else that of `huggingface_hub`."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def connect(token: str | None = None) -> HfApi:
    """A client.

    Args:
        token: to sign in with; by default `HF_TOKEN`, or the one that `hf auth login` keeps.

    Raises:
        BenchError: the token has characters that no token has.
    """
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint(), token=check_token(token))


def scrub(text: str, token: object = None) -> str:
    """Remove tokens from a text: the given one, those of the environment, and similar strings.

    Example:
        >>> scrub("no such token: hf_0123456789abcdefABCDEF")
        'no such token: hf_***'
    """
    from huggingface_hub import get_token

    known = {token, os.environ.get("HF_TOKEN"), os.environ.get("HUGGING_FACE_HUB_TOKEN"), get_token()}
    for secret in known:
        if isinstance(secret, str) and len(secret) > 5:
            text = text.replace(secret, "hf_***")
    return _TOKEN.sub("hf_***", text)


def check_name(repo: str, what: str) -> str:
    """A repo's name, if it can be one.

    Args:
        repo: `ORG/NAME`.
        what: the option or argument that gave it.

    Raises:
        BenchError: it is no such name.

    Example:
        >>> check_name("acme/net", "--model")
        'acme/net'
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        text = str(error).split(". ")[0].rstrip(".")
        raise BenchError(f"{what}: expected a repo's name as ORG/NAME, got {repo!r} ({text})") from None
    if repo.count("/") != 1:
        raise BenchError(f"{what}: expected a repo's name as ORG/NAME, got {repo!r}")
    return repo


def status_of(error: BaseException) -> int | None:
    """The HTTP status behind an error, if an answer is behind it."""
    found = _root(error)
    if of_the_store(found):
        told = _STORE.search(str(found))
        return int(told[1]) if told else None
    return getattr(getattr(found, "response", None), "status_code", None)


def unreachable(error: BaseException) -> bool:
    """Whether an error is of the way to the Hub: no connection, a dropped one, no answer in time."""
    found = _root(error)
    return (_of_the_way(found) or of_the_store(found)) and status_of(found) is None


def of_the_store(error: BaseException) -> bool:
    """Whether an error is of the client of the store for large files, which tries again by itself."""
    found = _root(error)
    return isinstance(found, ConnectionError | TimeoutError | RuntimeError) and bool(_NETWORK.search(str(found)))


def seconds_to_wait(error: BaseException, attempt: int) -> float | None:
    """How long to wait before the same is tried again; `None` where that would be of no use.

    Args:
        error: what went wrong.
        attempt: how often the same was tried, from 1.
    """
    status = status_of(error)
    if status not in _PASSING and not unreachable(error):
        return None
    if attempt >= ATTEMPTS or offline(error) or of_the_store(error) or _sent_again(error):
        return None
    if attempt >= CONNECTS and type(_root(error)).__name__ == "ConnectError":
        return None
    asked = _retry_after(_root(error))
    if asked is not None:
        return asked if asked <= LONGEST_WAIT else None
    return float(min(30.0, 0.5 * 2.0**attempt) * random.uniform(0.5, 1.0))


def _sent_again(error: BaseException) -> bool:
    """Whether it is about sending a file, which the Hub's client has tried several times by itself."""
    found = _root(error)
    for holder in (getattr(found, "response", None), found):
        with contextlib.suppress(Exception):  # an error without a request says so with an error of its own
            return bool(holder.request.method == "PUT")  # type: ignore[union-attr]
    return False


def explain(error: BaseException, repo: str, kind: str, api: HfApi) -> BenchError:
    """An error of the Hub, of the way there or of the disk as one line that says what to do; tokens are left out.

    Args:
        error: what went wrong.
        repo: the repo's name.
        kind: `model`, `dataset` or `space`.
        api: the client that was used.
    """
    if isinstance(error, BenchError):
        return error
    line = " ".join(_words(_root(error), repo, kind, api).split())
    away = offline(error) or unreachable(error)
    return (UnreachableError if away else BenchError)(scrub(line, api.token))


def wait_for(error: BaseException, seconds: float, api: HfApi) -> None:
    """Wait before the same is tried again, and say so.

    Args:
        error: what went wrong.
        seconds: how long.
        api: the client that is used.
    """
    status = status_of(error)
    what = "can't be reached" if status is None else f"answers with {status}"
    if seconds >= 0.5:
        _log.info("%s %s; trying again in %.0f s", api.endpoint, what, seconds)
    time.sleep(seconds)


def _words(error: BaseException, repo: str, kind: str, api: HfApi) -> str:
    from huggingface_hub.errors import EntryNotFoundError, LocalTokenNotFoundError, RevisionNotFoundError

    status, where = status_of(error), f"{repo} ({kind})"
    said = str(getattr(error, "server_message", None) or error).strip()[:300]
    if isinstance(error, LocalTokenNotFoundError):
        return _sign_in(api, "no token was given")
    if offline(error):
        return f"{where}: the Hub is not asked while HF_HUB_OFFLINE is set; unset it"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.filename or 'disk'}: no room left on the disk; make room, or set HF_HOME to a larger one"
    if status is None and unreachable(error):
        reason = f"{type(error).__name__}: {error}"[:160]
        return f"{api.endpoint}: can't be reached ({reason}); check the network and HF_ENDPOINT, then run it again"
    if isinstance(error, RevisionNotFoundError | EntryNotFoundError):
        return f"{where}: {said}"
    if status in (401, 404):
        return _absent(repo, kind, api)
    if status in (402, 413, 507) or (status == 403 and _NO_ROOM.search(said)):
        return f"{where}: the Hub has no room for it ({said}); free storage there, or publish under another name"
    if status is not None and of_the_store(error):
        return f"{where}: the Hub's store for large files refuses ({status}): no right to write there, or no room"
    if status == 403:
        return _forbidden(where, repo, said, api)
    if status == 429:
        wait = _retry_after(error)
        when = f"in {wait:.0f} seconds" if wait is not None else "later"
        return f"{where}: too many requests; run it again {when}, what is there already is not sent twice"
    if status in (409, 412):
        return f"{where}: others publish there all the time, and none of {CONFLICTS} attempts came first; run it again"
    if status in _PASSING:
        times = SENDS if _sent_again(error) else ATTEMPTS
        return f"{where}: the Hub failed {times} times ({status}: {said}); run it again later"
    if status is not None:
        return f"{where}: the Hub refuses ({status}: {said})"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or where}: {error.strerror}"
    return f"{where}: {type(error).__name__}: {said}"


def _sign_in(api: HfApi, why: str) -> str:
    return f"{why}; make one at {api.endpoint}/settings/tokens and give it as HF_TOKEN or to `hf auth login`"


def _user(api: HfApi) -> tuple[str | None, str | None, int | None]:
    """The token's user and role (where the Hub tells), else the status of the refusal."""
    try:
        found: dict[str, Any] = api.whoami()
    except Exception as error:
        return None, None, status_of(error) or (0 if not unreachable(error) else None)
    auth = found.get("auth") or {}
    return found.get("name"), (auth.get("accessToken") or {}).get("role"), None


def _absent(repo: str, kind: str, api: HfApi) -> str:
    from huggingface_hub import get_token

    name, _, status = _user(api)
    if name is None and status is not None:
        if api.token is False or not (api.token or get_token()):
            return _sign_in(api, f"{repo} ({kind}): not there for readers without a token, and no token was given")
        return _sign_in(api, f"the Hub refuses the token ({status})")
    other = other_kind(repo, kind, api)
    hint = f"{repo} is a {other}" if other else "check the name"
    return f"{repo}: no such {kind} at {api.endpoint}, or it is private and {name or 'you'} can't see it; {hint}"


def other_kind(repo: str, kind: str, api: HfApi) -> str | None:
    """The repo type that a name has on the Hub, if it is not the expected one."""
    for other in ("model", "dataset", "space"):
        if other != kind:
            with contextlib.suppress(Exception):
                api.repo_info(repo, repo_type=other)
                return other
    return None


def _forbidden(where: str, repo: str, said: str, api: HfApi) -> str:
    name, role, _ = _user(api)
    if role == "read":
        return _sign_in(api, f"{where}: the token of {name} may only read; publishing needs one that may write")
    owner = repo.split("/")[0]
    return f"{where}: {name or 'this token'} may not write at {owner} ({said}); is the name somebody else's?"


def offline(error: BaseException) -> bool:
    """Whether it was `HF_HUB_OFFLINE` that kept a request back."""
    return type(_root(error)).__name__ == "OfflineModeIsEnabled"


def _root(error: BaseException) -> BaseException:
    """The error that tells most: an answer's or the way's below what wraps it, else the error itself."""
    found: BaseException | None = error
    while found is not None:
        if _of_the_way(found) or getattr(found, "response", None) is not None:
            return found
        found = found.__cause__
    return error


def _of_the_way(error: BaseException) -> bool:
    """Whether an error is one of the HTTP library's, whichever version of it the Hub's client stands on."""
    if isinstance(error, RuntimeError) and "client has been closed" in str(error):
        return True  # another thread of the client lost the connection, and closed the session of all
    return any(kind.__name__ == "HTTPError" and kind.__module__.startswith("httpx") for kind in type(error).__mro__)


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return max(0.0, float(headers["Retry-After"]))
    return None


def trying(work: Callable[[], T], repo: str, kind: str, api: HfApi) -> T:
    """The result of a request, which is repeated after failures that may pass.

    Raises:
        BenchError: what stands in the way, in one line.
    """
    attempt = 0
    with quietly():
        while True:
            try:
                return work()
            except BenchError:
                raise
            except Exception as error:
                attempt += 1
                wait = seconds_to_wait(error, attempt)
                if wait is None:
                    raise explain(error, repo, kind, api) from None
                again = error
            wait_for(again, wait, api)


class _Quiet:
    """Counts the callers that want quiet, and holds the settings to restore after the last."""

    lock = threading.Lock()
    wanted = 0
    before = (logging.WARNING, True)
    retries = logging.getLogger("huggingface_hub.utils._http")


class _Retries(logging.Handler):
    """Logs the waits of the Hub's client without addresses, which may hold tokens."""

    _STATUS = re.compile(r"HTTP Error (\d+) thrown while requesting (\w+) \w+://([^/\s]+)")
    _WAIT = re.compile(r"(?:Retrying in|Waiting) ([\d.]+)s.*\[Retry (\d+)/(\d+)\]")

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._last = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a wait on as one line."""
        text = record.getMessage()
        if found := self._STATUS.search(text):
            self._last.text = f"{found[3]} answers {found[2]} with {found[1]}"
        elif found := self._WAIT.search(text):
            what = getattr(self._last, "text", "the connection to the Hub failed")
            _log.info("%s; trying again in %.0f s (%s of %s)", what, float(found[1]), found[2], found[3])
        else:
            self._last.text = "the connection to the Hub failed"


_RETRIES = _Retries()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Hide the client's progress bars and warnings in every thread; errors still say what failed."""
    from huggingface_hub import utils

    bars: Any = utils  # names that the package does not list as exported, documented though they are
    with _Quiet.lock:
        _Quiet.wanted += 1
        if _Quiet.wanted == 1:
            _Quiet.before = utils.logging.get_verbosity(), not bars.are_progress_bars_disabled()
            utils.logging.set_verbosity(logging.ERROR)
            bars.disable_progress_bars()
            _Quiet.retries.setLevel(logging.WARNING)
            _Quiet.retries.addHandler(_RETRIES)
            _Quiet.retries.propagate = False
    try:
        yield
    finally:
        with _Quiet.lock:
            _Quiet.wanted -= 1
            if _Quiet.wanted == 0:
                level, shown = _Quiet.before
                utils.logging.set_verbosity(level)
                _Quiet.retries.setLevel(logging.NOTSET)
                _Quiet.retries.removeHandler(_RETRIES)
                _Quiet.retries.propagate = True
                if shown:
                    bars.enable_progress_bars()
