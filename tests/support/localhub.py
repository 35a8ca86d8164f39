#!/usr/bin/env python3
"""localhub: a small, disk-backed server that speaks the Hugging Face Hub's HTTP API on loopback.

One file on purpose, far longer than the house's others: it is a program of its own that imports nothing of the package
and can be copied and started anywhere, and its parts (git's objects, repos, routes) mean nothing apart.

Standard library only (PyYAML is used for card metadata when it is importable). Every repo is a genuine bare git
repository (loose objects, real blob/tree/commit ids, `git clone ROOT/repos/datasets/org/name` works) and large files
are LFS pointers in git plus content-addressed blobs under ROOT/lfs, so oids, ETags and sizes are those of the Hub.

    python localhub.py --root ./hubdata --port 8765 --user alice=hf_alice:acme,labs --user eve=hf_eve::read
    HF_ENDPOINT=http://127.0.0.1:8765 HF_TOKEN=hf_alice HF_HUB_DISABLE_XET=1 python my_client.py

Troubles on request, a JSON list sent to `POST /_localhub/troubles` in place of those there are: {"match": a regular
expression on "METHOD /path", "times": 1, "status": 429, "headers": {"Retry-After": "2"}, "message": "slow down"}, or
with "drop" in place of the status: "before" (the request is not served), "after" (served, but the answer is lost) or
"exit" (the server dies in the middle of the request). GET gives those that are left.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import contextlib
import datetime
import difflib
import fnmatch
import functools
import hashlib
import hmac
import io
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

TYPES = ("models", "datasets", "spaces")
LFS_SUFFIXES = (
    "*.7z *.arrow *.avro *.bin *.bz2 *.ckpt *.ftz *.gz *.h5 *.joblib *.lz4 *.mds *.mlmodel *.model *.msgpack *.npy"
    " *.npz *.onnx *.ot *.parquet *.pb *.pickle *.pkl *.pt *.pth *.rar *.safetensors *.tar.* *.tar *.tflite *.tgz"
    " *.wasm *.xz *.zip *.zst *tfevents*"
)
MEDIA_SUFFIXES = "*.pcm *.aac *.flac *.mp3 *.ogg *.wav *.bmp *.gif *.png *.tiff *.jpg *.jpeg *.webp *.mp4 *.webm"
LFS_MIN_SIZE = 10 * 1024 * 1024  # the Hub sends anything larger to LFS whatever its name
TREE_PAGE, TREE_PAGE_EXPANDED = 1000, 50
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"
POINTER_RE = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (\d+)\n")
NAME_RE = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,94}[\w])?")
REF_RE = re.compile(r"(?!.*\.\.)(?!.*\.lock$)[\w][\w./-]{0,200}")


class HubError(Exception):
    def __init__(self, status, message, code=None, headers=None, **body):
        super().__init__(message)
        self.status, self.message, self.code, self.headers, self.body = status, message, code, headers or {}, body


def iso(ts):
    return datetime.datetime.fromtimestamp(ts, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def atomic_write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, tmp = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(fd, "wb") as f:
        f.write(data)
    os.replace(tmp, path)


# ---------------------------------------------------------------------------------------------- git object store
class Git:
    """Just enough of git's on-disk format: loose objects and loose refs."""

    def __init__(self, path):
        self.path = Path(path)

    def init(self):
        for d in ("objects", "refs/heads", "refs/tags", "refs/pr"):
            (self.path / d).mkdir(parents=True, exist_ok=True)
        (self.path / "HEAD").write_text("ref: refs/heads/main\n")
        (self.path / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")

    def _file(self, oid):
        return self.path / "objects" / oid[:2] / oid[2:]

    def put(self, kind, data):
        raw = f"{kind} {len(data)}\0".encode() + data
        oid = hashlib.sha1(raw).hexdigest()
        if not self._file(oid).exists():
            atomic_write(self._file(oid), zlib.compress(raw, 1))
        return oid

    def get(self, oid, want=None):
        try:
            raw = zlib.decompress(self._file(oid).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise KeyError(oid) from None
        head, _, data = raw.partition(b"\0")
        if want and head.split()[0].decode() != want:
            raise KeyError(oid)
        return data

    @functools.lru_cache(maxsize=50_000)  # noqa: B019
    def blob_info(self, oid):
        """(size, lfs sha256 or None, pointer size) of a blob, reading no more than its head."""
        head, _, data = zlib.decompressobj().decompress(self._file(oid).read_bytes(), 512).partition(b"\0")
        size = int(head.split()[1])
        m = POINTER_RE.fullmatch(data) if size < 300 else None
        return (int(m[2]), m[1].decode(), size) if m else (size, None, None)

    @functools.lru_cache(maxsize=5_000)  # noqa: B019
    def tree(self, oid):
        """{name: (is_dir, oid)}"""
        data, out, i = self.get(oid, "tree"), {}, 0
        while i < len(data):
            j = data.index(b"\0", i)
            mode, name = data[i:j].split(b" ", 1)
            out[name.decode()] = (mode == b"40000", data[j + 1 : j + 21].hex())
            i = j + 21
        return out

    @functools.lru_cache(maxsize=2_000)  # noqa: B019
    def walk(self, oid, prefix=""):
        """All entries below a tree, depth first: ((path, is_dir, oid), ...)"""
        out = []
        for name, (is_dir, sub) in sorted(self.tree(oid).items()):
            out.append((prefix + name, is_dir, sub))
            if is_dir:
                out.extend(self.walk(sub, prefix + name + "/"))
        return tuple(out)

    def files(self, commit):
        return {p: oid for p, is_dir, oid in self.walk(self.commit(commit)["tree"]) if not is_dir}

    def lookup(self, commit, path):
        """(is_dir, oid) of a path, or None."""
        is_dir, oid = True, self.commit(commit)["tree"]
        for part in [p for p in path.split("/") if p]:
            entry = self.tree(oid).get(part) if is_dir else None
            if entry is None:
                return None
            is_dir, oid = entry
        return is_dir, oid

    def write_tree(self, files):
        top, sub = {}, {}
        for path, oid in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                sub.setdefault(name, {})[rest] = oid
            else:
                top[name] = (b"100644", oid, name)
        for name, children in sub.items():
            top[name] = (b"40000", self.write_tree(children), name + "/")
        return self.put(
            "tree",
            b"".join(
                mode + b" " + name.encode() + b"\0" + bytes.fromhex(oid)
                for name, (mode, oid, _) in sorted(top.items(), key=lambda kv: kv[1][2].encode())
            ),
        )

    def write_commit(self, tree, parents, user, message):
        who = f"{user} <{user}@users.noreply.localhub> {int(time.time())} +0000"
        lines = [f"tree {tree}"] + [f"parent {p}" for p in parents] + [f"author {who}", f"committer {who}", "", message]
        return self.put("commit", ("\n".join(lines) + "\n").encode())

    @functools.lru_cache(maxsize=5_000)  # noqa: B019
    def commit(self, oid):
        head, _, message = self.get(oid, "commit").decode().partition("\n\n")
        title, _, body = message.rstrip("\n").partition("\n")
        c = {"oid": oid, "parents": [], "title": title, "message": body.strip("\n")}
        for line in head.split("\n"):
            key, _, value = line.partition(" ")
            if key == "parent":
                c["parents"].append(value)
            elif key == "author":
                c["author"], c["date"] = value.split(" <")[0], int(value.split("> ")[1].split()[0])
            else:
                c[key] = value
        return c

    def log(self, oid):
        while oid:
            c = self.commit(oid)
            yield c
            oid = c["parents"][0] if c["parents"] else None

    def ref(self, name):
        try:
            return (self.path / name).read_text().strip()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def set_ref(self, name, oid):
        if oid is None:
            (self.path / name).unlink()
        else:
            atomic_write(self.path / name, (oid + "\n").encode())

    def refs(self, under):
        base = self.path / "refs" / under
        return {str(p.relative_to(base)): p.read_text().strip() for p in sorted(base.rglob("*")) if p.is_file()}


class Repo:
    def __init__(self, hub, rtype, rid):
        self.hub, self.type, self.id = hub, rtype, rid  # type is plural: models, datasets, spaces
        self.path = hub.root / "repos" / rtype / rid
        self.git = Git(self.path)
        self.lock = hub.lock(rtype, rid)

    @property
    def prefix(self):
        return "" if self.type == "models" else self.type + "/"

    @property
    def meta(self):
        try:
            return json.loads((self.path / "localhub.json").read_text())
        except FileNotFoundError:
            return None

    def save(self, meta):
        atomic_write(self.path / "localhub.json", json.dumps(meta, indent=1).encode())

    def full_ref(self, rev):
        if rev.startswith("refs/"):
            return rev if REF_RE.fullmatch(rev) else "refs/heads/?"
        return "refs/heads/" + rev if REF_RE.fullmatch(rev) else "refs/heads/?"

    def resolve(self, rev):
        oid = self.git.ref(self.full_ref(rev)) or (self.git.ref("refs/tags/" + rev) if REF_RE.fullmatch(rev) else None)
        if oid is None and re.fullmatch(r"[0-9a-f]{40}", rev):
            with contextlib.suppress(KeyError):
                oid = self.git.commit(rev)["oid"]
        if oid is None:
            raise HubError(404, f"Invalid rev id: {rev}", "RevisionNotFound")
        return oid

    def entry(self, path, is_dir, oid, last=None):
        if is_dir:
            e = {"type": "directory", "oid": oid, "size": 0, "path": path}
        else:
            size, sha, psize = self.git.blob_info(oid)
            e = {"type": "file", "oid": oid, "size": size, "path": path}
            if sha:
                e["lfs"] = {"oid": sha, "size": size, "pointerSize": psize}
        if last is not None:
            c = last.get(path)
            e["lastCommit"] = {"id": c["oid"], "title": c["title"], "date": iso(c["date"])}
            if not is_dir:
                e["securityFileStatus"] = {"status": "safe", "avScan": None, "pickleImportScan": None}
        return e

    def last_commits(self, head):
        """{path: the newest commit that touched it}"""
        out, wanted = {}, {p: o for p, _, o in self.git.walk(self.git.commit(head)["tree"])}
        for c in self.git.log(head):
            parent = c["parents"][0] if c["parents"] else None
            before = {p: o for p, _, o in self.git.walk(self.git.commit(parent)["tree"])} if parent else {}
            for p in [p for p, o in wanted.items() if before.get(p) != o]:
                out[p] = c
                del wanted[p]
        return out

    def content(self, oid):
        """(size, etag, opener) of a file's real bytes."""
        size, sha, _ = self.git.blob_info(oid)
        if sha:
            return size, sha, lambda: open(self.hub.lfs_path(sha), "rb")
        data = self.git.get(oid, "blob")
        return size, oid, lambda: io.BytesIO(data)

    def card(self, head):
        found = self.git.lookup(head, "README.md")
        if not found or found[0]:
            return {}
        text = self.content(found[1])[2]().read().decode("utf-8", "replace")
        return front_matter(text)[0] or {}

    def info(self, rev="main", blobs=False, full=True):
        meta, head = self.meta, self.resolve(rev)
        card, c = self.card(head), self.git.commit(head)
        d = {
            "_id": hashlib.sha1(f"{self.type}/{self.id}".encode()).hexdigest()[:24],
            "id": self.id,
            "author": self.id.split("/")[0],
            "sha": head,
            "createdAt": meta["createdAt"],
            "lastModified": iso(c["date"]),
            "private": meta["private"],
            "visibility": "private" if meta["private"] else "public",
            "gated": meta.get("gated", False),
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": [str(t) for t in card.get("tags") or []],
            "cardData": card,
        }
        if self.type == "models":
            d.update(modelId=self.id, pipeline_tag=card.get("pipeline_tag"), library_name=card.get("library_name"))
        if self.type == "spaces":
            d.update(sdk=meta.get("sdk"))
        if full:
            d["siblings"] = []
            for path, is_dir, oid in self.git.walk(c["tree"]):
                if not is_dir:
                    s = {"rfilename": path}
                    if blobs:
                        e = self.entry(path, False, oid)
                        s.update(size=e["size"], blobId=oid)
                        if "lfs" in e:
                            s["lfs"] = {
                                "sha256": e["lfs"]["oid"],
                                "size": e["size"],
                                "pointerSize": e["lfs"]["pointerSize"],
                            }
                    d["siblings"].append(s)
            d["usedStorage"] = sum(self.git.blob_info(o)[0] for o in self.git.files(head).values())
        return d

    def lfs_rule(self, head, path, size, sample):
        found, rules = self.git.lookup(head, ".gitattributes"), []
        if found and not found[0]:
            for line in self.git.get(found[1]).decode("utf-8", "replace").splitlines():
                parts = line.split()
                if len(parts) > 1 and not line.startswith("#"):
                    rules.append((parts[0], "filter=lfs" in parts[1:]))
        for pattern, lfs in reversed(rules):
            if fnmatch.fnmatchcase(path if "/" in pattern else path.rsplit("/", 1)[-1], pattern.replace("**", "*")):
                return lfs
        return size > LFS_MIN_SIZE or b"\0" in sample


def front_matter(text):
    """(metadata or None, error or None) of a card."""
    m = re.match(r"\s*---[ \t]*\r?\n(.*?)\r?\n?---[ \t]*(?:\r?\n|$)", text, re.S)
    if not m:
        return None, None
    try:
        import yaml

        data = yaml.safe_load(m[1])
        return (data, None) if isinstance(data, dict) else (None, None if data is None else "metadata is not a mapping")
    except ImportError:
        return None, None
    except Exception as e:
        return None, str(e)


# ---------------------------------------------------------------------------------------------- the hub
class Hub:
    def __init__(self, root, users, multipart=None, trace=None):
        self.root = Path(root)
        self.root.mkdir(parents=True, exist_ok=True)
        self.users, self.multipart, self.trace = users, multipart, trace
        self.secret = os.urandom(32)
        self._locks, self._guard = {}, threading.Lock()
        self.troubles = []

    def lock(self, *key):
        with self._guard:
            return self._locks.setdefault(key, threading.RLock())

    def trouble(self, text):
        """The trouble that a request runs into, one time less of it left; or None."""
        with self._guard:
            for t in self.troubles:
                if t.get("times", 1) > 0 and re.search(t["match"], text):
                    t["times"] = t.get("times", 1) - 1
                    return t
        return None

    def lfs_path(self, sha):
        return self.root / "lfs" / sha[:2] / sha[2:4] / sha

    def sign(self, text):
        return hmac.new(self.secret, text.encode(), "sha256").hexdigest()[:32]

    def create(self, rtype, rid, user, private, sdk=None):
        repo = Repo(self, rtype, rid)
        with repo.lock:
            if repo.meta is not None:
                return repo, False
            repo.git.init()
            patterns = LFS_SUFFIXES.split() + (MEDIA_SUFFIXES.split() if rtype == "datasets" else [])
            attrs = "".join(f"{p} filter=lfs diff=lfs merge=lfs -text\n" for p in patterns)
            files = {".gitattributes": repo.git.put("blob", attrs.encode())}
            if rtype == "spaces":
                readme = f"---\ntitle: {rid.split('/')[1]}\nsdk: {sdk}\napp_file: app.py\n---\n"
                files["README.md"] = repo.git.put("blob", readme.encode())
            head = repo.git.write_commit(repo.git.write_tree(files), [], user, "initial commit")
            repo.git.set_ref("refs/heads/main", head)
            now = iso(time.time())
            repo.save(
                {"private": private, "createdAt": now, "creator": user, "sdk": sdk, "nextNum": 1, "discussions": {}}
            )
            return repo, True

    def list(self, rtype):
        for p in sorted((self.root / "repos" / rtype).glob("*/*/localhub.json")):
            yield Repo(self, rtype, f"{p.parent.parent.name}/{p.parent.name}")


# ---------------------------------------------------------------------------------------------- http
REV = r"(?P<rev>refs/(?:pr|convert|heads)/[^/]+|[^/]+)"
API = r"/api/(?P<type>models|datasets|spaces)/(?P<ns>[^/]+)/(?P<name>[^/]+)"
WEB = r"/(?:(?P<type>datasets|spaces|models)/)?(?P<ns>[^/]+)/(?P<name>[^/]+)"
ROUTES = []


def route(methods, pattern):
    def add(fn):
        ROUTES.append((methods.split(), re.compile(pattern), fn))
        return fn

    return add


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    hub: Hub = None
    server_version = "localhub/0.1"

    # ---- plumbing
    def dispatch(self):
        self.split = urlsplit(self.path)
        self.query = {k: v[-1] for k, v in parse_qs(self.split.query, keep_blank_values=True).items()}
        self._read, self._t0, self._sample, self._status = False, time.time(), None, None
        trouble = self.hub.trouble(f"{self.command} {self.path}")
        try:
            if trouble:
                self.run_into(trouble)
            for methods, pattern, fn in ROUTES:
                m = pattern.fullmatch(self.split.path)
                if m and self.command in methods:
                    fn(self, **{k: unquote(v) if v is not None else None for k, v in m.groupdict().items()})
                    break
            else:
                raise HubError(404, f"No route for {self.command} {self.split.path}")
        except HubError as e:
            headers = {"X-Error-Message": e.message.encode("ascii", "replace").decode(), **e.headers}
            if e.code:
                headers["X-Error-Code"] = e.code
            self.reply({"error": e.message, **e.body}, e.status, headers)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception as e:  # a bug here: say so instead of hanging the client
            import traceback

            traceback.print_exc()
            self.reply({"error": f"{type(e).__name__}: {e}"}, 500)
        if trouble and trouble.get("drop") == "after":
            self.connection.shutdown(socket.SHUT_RDWR)
        try:
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    def run_into(self, trouble):
        if trouble.get("drop") == "exit":
            self.rfile.read(min(int(self.headers.get("Content-Length") or 0) // 2, 1 << 20))
            os._exit(1)
        if trouble.get("drop") == "before":
            raise ConnectionResetError("as asked for")
        if "status" in trouble:
            message = trouble.get("message") or f"Trouble {trouble['status']}"
            raise HubError(trouble["status"], message, headers=trouble.get("headers"))

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = dispatch  # noqa: N815

    def log_message(self, *a):
        pass

    def chunks(self):
        """The request body, whether sent with a length or chunked."""
        self._read = True
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            while n := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                yield self.rfile.read(n)
                self.rfile.readline()
            while self.rfile.readline().strip():  # trailers, then the empty line that ends the body
                pass
        else:
            n = int(self.headers.get("Content-Length") or 0)
            while n:
                data = self.rfile.read(min(n, 1 << 20))
                if not data:
                    raise ConnectionResetError("body cut short")
                n -= len(data)
                yield data

    def body(self):
        data = b"".join(self.chunks())
        self._sample = data[:2000]
        return data

    def json(self):
        try:
            return json.loads(self.body() or b"{}")
        except ValueError:
            raise HubError(400, "Invalid JSON body") from None

    @property
    def base(self):
        return f"http://{self.headers.get('Host') or 'localhost'}"

    def reply(self, obj=None, status=200, headers=None, data=None, ctype="application/json; charset=utf-8"):
        if not self._read:
            for _ in self.chunks():  # never leave a body in the socket of a kept-alive connection
                pass
        if data is None:
            data = json.dumps(obj).encode()
        self.start(status, {"Content-Type": ctype, "Content-Length": str(len(data)), **(headers or {})}, data)
        if self.command != "HEAD":
            self.wfile.write(data)

    def start(self, status, headers, data=b""):
        self._status = status
        self.send_response(status)
        headers.setdefault("X-Request-Id", binascii.hexlify(os.urandom(8)).decode())
        for k, v in headers.items():
            self.send_header(k, v)
        self.end_headers()
        if self.hub.trace:
            auth = "auth" if self.headers.get("Authorization") else "anon"
            rec = {
                "method": self.command,
                "path": self.path,
                "auth": auth,
                "req_type": self.headers.get("Content-Type"),
                "range": self.headers.get("Range"),
                "ua": (self.headers.get("User-Agent") or "")[:60],
                "req_body": self._sample.decode("utf-8", "replace") if self._sample else None,
                "status": status,
                "headers": {k: v for k, v in headers.items() if k != "X-Request-Id"},
                "resp_body": data[:1500].decode("utf-8", "replace") if data else None,
                "ms": round((time.time() - self._t0) * 1000, 1),
            }
            with self.hub.lock("trace"), open(self.hub.trace, "a") as f:
                f.write(json.dumps(rec) + "\n")

    # ---- access
    @property
    def user(self):
        auth = self.headers.get("Authorization") or ""
        if not auth:
            return None
        token = auth.split(" ", 1)[-1]
        for name, u in self.hub.users.items():
            if u["token"] == token:
                return {"name": name, **u}
        raise HubError(401, "Invalid credentials in Authorization header")

    def need_user(self):
        return self.user or self.fail_auth()

    def fail_auth(self):
        raise HubError(401, "Invalid username or password.")

    def need_write_token(self):
        u = self.need_user()
        if u.get("role") == "read":
            raise HubError(403, "You must use a write token to do this")
        return u

    def can_read(self, ns):
        u = self.user
        return bool(u) and (ns == u["name"] or ns in u["orgs"] or "*" in u["orgs"])

    def can_write(self, ns):
        return self.can_read(ns) and self.user.get("role") != "read"

    def repo(self, type, ns, name, write=False):
        if not (NAME_RE.fullmatch(ns) and NAME_RE.fullmatch(name)):
            raise HubError(404, "Repository not found", "RepoNotFound")
        repo, user = (
            Repo(self.hub, type or "models", f"{ns}/{name}"),
            self.user,
        )  # a bad token fails even on public repos
        meta = repo.meta
        if meta is None or (meta["private"] and not self.can_read(ns)):
            raise HubError(404 if user else 401, "Repository not found", "RepoNotFound")
        if write:
            self.need_write_token()
            if not self.can_write(ns):
                raise HubError(403, "You don't have the rights to write in this repository")
        return repo


def flag(value):
    return str(value or "").lower() in ("1", "true", "yes")


# ---- account and repos
@route("GET", "/api/whoami-v2")
def whoami(h):
    u = h.need_user()
    h.reply(
        {
            "type": "user",
            "id": hashlib.sha1(u["name"].encode()).hexdigest()[:24],
            "name": u["name"],
            "fullname": u["name"],
            "isPro": False,
            "orgs": [{"type": "org", "name": o, "fullname": o, "roleInOrg": "admin"} for o in u["orgs"] if o != "*"],
            "auth": {
                "type": "access_token",
                "accessToken": {"displayName": "localhub", "role": u.get("role", "write")},
            },
        }
    )


@route("GET POST", "/_localhub/troubles")
def troubles(h):
    if h.command == "POST":
        h.hub.troubles = h.json()
    h.reply(h.hub.troubles)


@route("GET", "/api/agent-harnesses")
def harnesses(h):
    h.reply({"standardEnvVars": [], "harnesses": {}})


@route("GET", "/(?:info|parquet|splits|is-valid)")  # datasets-server.<host>, should that name ever resolve to us
def viewer(h):
    raise HubError(404, "The dataset viewer is not served here.", "ResponseNotFound")


def plural(kind):
    if kind not in (None, "model", "dataset", "space"):
        raise HubError(400, f"Unknown repo type {kind}")
    return (kind or "model") + "s"


@route("POST", "/api/repos/create")
def create(h):
    d, u = h.json(), h.need_write_token()
    ns, name, rtype = d.get("organization") or u["name"], d.get("name") or "", plural(d.get("type"))
    if not (NAME_RE.fullmatch(ns) and NAME_RE.fullmatch(name)) or "--" in name or ".." in name or name.endswith(".git"):
        raise HubError(400, f"Invalid repo name: {ns}/{name}")
    if not h.can_write(ns):
        raise HubError(403, f'You don\'t have the rights to create a {rtype[:-1]} under the namespace "{ns}"')
    if rtype == "spaces" and d.get("sdk") not in ("gradio", "streamlit", "docker", "static"):
        raise HubError(400, "Invalid sdk")
    private = flag(d.get("private")) or d.get("visibility") in ("private", "protected")
    repo, new = h.hub.create(rtype, f"{ns}/{name}", u["name"], private, d.get("sdk"))
    url = f"{h.base}/{repo.prefix}{repo.id}"
    if not new:
        raise HubError(409, f"You already created this {rtype[:-1]} repo: {repo.id}", url=url)
    h.reply({"url": url, "name": repo.id, "id": repo.info()["_id"]})


@route("DELETE", "/api/repos/delete")
def delete(h):
    d, u = h.json(), h.need_user()
    repo = h.repo(plural(d.get("type")), d.get("organization") or u["name"], d.get("name") or "", write=True)
    with repo.lock:
        shutil.rmtree(repo.path)
    h.reply({"success": True})


@route("POST", "/api/repos/move")
def move(h):
    d = h.json()
    rtype = plural(d.get("type"))
    src, (ns, name) = h.repo(rtype, *d["fromRepo"].split("/"), write=True), d["toRepo"].split("/")
    dst = Repo(h.hub, rtype, d["toRepo"])
    if not (NAME_RE.fullmatch(ns) and NAME_RE.fullmatch(name)) or not h.can_write(ns):
        raise HubError(403, "You cannot move a repo there")
    if dst.meta is not None:
        raise HubError(409, f"{d['toRepo']} already exists")
    with src.lock, dst.lock:
        dst.path.parent.mkdir(parents=True, exist_ok=True)
        src.path.rename(dst.path)
    h.reply({"success": True})


@route("PUT", API + "/settings")
def settings(h, type, ns, name):
    d, repo = h.json(), h.repo(type, ns, name, write=True)
    with repo.lock:
        meta = repo.meta
        if "visibility" in d or "private" in d:
            meta["private"] = flag(d.get("private")) or d.get("visibility") == "private"
        if "gated" in d:
            meta["gated"] = d["gated"]
        repo.save(meta)
    h.reply({"private": meta["private"], "gated": meta.get("gated", False)})


@route("POST", "/api/validate-yaml")
def validate_yaml(h):
    data, error = front_matter(h.json().get("content") or "")
    if error:
        h.reply({"errors": [{"message": error}], "warnings": []}, 400)
        return
    warn = [] if data else [{"message": "empty or missing yaml metadata in repo card"}]
    h.reply({"errors": [], "warnings": warn})


# ---- reading
@route("GET", "/api/(?P<type>models|datasets|spaces)")
def listing(h, type):
    q, out = h.query, []
    for repo in h.hub.list(type):
        ns = repo.id.split("/")[0]
        if repo.meta["private"] and not h.can_read(ns):
            continue
        if q.get("author", ns) == ns and (q.get("search") or "").lower() in repo.id.lower():
            out.append(repo.info(full=flag(q.get("full"))))
    out.sort(key=lambda d: d["lastModified"], reverse=True)
    h.reply(out[: int(q.get("limit") or 1000)])


@route("GET", API + "(?:/revision/" + REV + ")?")
def info(h, type, ns, name, rev):
    repo = h.repo(type, ns, name)
    d = repo.info(rev or "main", blobs=flag(h.query.get("blobs")))
    expand = [v for k, vs in parse_qs(h.split.query).items() if k.startswith("expand") for v in vs]
    h.reply({k: v for k, v in d.items() if not expand or k in ("_id", "id", *expand)})


@route("GET", API + "/tree/" + REV + "(?:/(?P<path>.*))?")
def tree(h, type, ns, name, rev, path):
    repo = h.repo(type, ns, name)
    head, path = repo.resolve(rev), (path or "").strip("/")
    found = repo.git.lookup(head, path)
    if found is None:
        raise HubError(404, f'{path} does not exist on "{rev}"', "EntryNotFound", {"X-Repo-Commit": head})
    is_dir, oid = found
    if not is_dir:
        entries = [(path, False, oid)]
    elif flag(h.query.get("recursive")):
        entries = repo.git.walk(oid, path + "/" if path else "")
    else:
        entries = [((path + "/" if path else "") + n, d, o) for n, (d, o) in sorted(repo.git.tree(oid).items())]
    expand = flag(h.query.get("expand"))
    size = min(int(h.query.get("limit") or TREE_PAGE), TREE_PAGE_EXPANDED if expand else TREE_PAGE)
    start = int(base64.urlsafe_b64decode(h.query["cursor"])) if h.query.get("cursor") else 0
    last = repo.last_commits(head) if expand else None
    headers = {"X-Repo-Commit": head}
    if start + size < len(entries):
        query = {**h.query, "cursor": base64.urlsafe_b64encode(str(start + size).encode()).decode()}
        url = f"{h.base}{h.split.path}?" + "&".join(f"{k}={quote(v, safe='')}" for k, v in query.items())
        headers["Link"] = f'<{url}>; rel="next"'
    h.reply([repo.entry(*e, last=last) for e in entries[start : start + size]], headers=headers)


@route("POST", API + "/paths-info/" + REV)
def paths_info(h, type, ns, name, rev):
    raw = h.body()
    if "json" in (h.headers.get("Content-Type") or ""):
        d = json.loads(raw)
        paths, expand = d.get("paths") or [], d.get("expand")
    else:
        form = parse_qs(raw.decode())
        paths, expand = form.get("paths", []), form.get("expand", [""])[-1]
    repo = h.repo(type, ns, name)
    head = repo.resolve(rev)
    last = repo.last_commits(head) if flag(expand) else None
    out = []
    for p in paths:
        found = repo.git.lookup(head, p.strip("/")) if p.strip("/") else None
        if found:
            out.append(repo.entry(p.strip("/"), *found, last=last))
    h.reply(out)


@route("GET", API + "/refs")
def refs(h, type, ns, name):
    repo = h.repo(type, ns, name)

    def group(kind, label=lambda n: n):
        return [
            {"name": label(n), "ref": f"refs/{kind}/{n}", "targetCommit": oid} for n, oid in repo.git.refs(kind).items()
        ]

    d = {"branches": group("heads"), "converts": group("convert"), "tags": group("tags")}
    if flag(h.query.get("include_prs")):
        d["pullRequests"] = group("pr")
    h.reply(d)


@route("GET", API + "/commits/" + REV)
def commits(h, type, ns, name, rev):
    repo = h.repo(type, ns, name)
    log = list(repo.git.log(repo.resolve(rev)))
    size, page = int(h.query.get("limit") or 50), int(h.query.get("p") or 0)
    headers = {"X-Total-Count": str(len(log))}
    if (page + 1) * size < len(log):
        headers["Link"] = f'<{h.base}{h.split.path}?limit={size}&p={page + 1}>; rel="next"'
    h.reply(
        [
            {
                "id": c["oid"],
                "title": c["title"],
                "message": c["message"],
                "date": iso(c["date"]),
                "authors": [{"user": c["author"]}],
            }
            for c in log[page * size : (page + 1) * size]
        ],
        headers=headers,
    )


@route("GET HEAD", WEB + "/(?:resolve|raw)/" + REV + "/(?P<path>.+)")
@route(
    "GET HEAD",
    r"/api/resolve-cache/(?P<type>models|datasets|spaces)/(?P<ns>[^/]+)/(?P<name>[^/]+)/" + REV + "/(?P<path>.+)",
)
def resolve(h, type, ns, name, rev, path):
    repo = h.repo(type, ns, name)
    head = repo.resolve(rev)
    headers = {"X-Repo-Commit": head, "Accept-Ranges": "bytes"}
    found = repo.git.lookup(head, path)
    if found is None or found[0]:
        raise HubError(404, "Entry not found", "EntryNotFound", headers)
    size, etag, opener = repo.content(found[1])
    headers["ETag"] = f'"{etag}"'
    if len(etag) == 64:
        headers.update({"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(size)})
    start, end, status = 0, size, 200
    m = re.fullmatch(r"bytes=(\d*)-(\d*)", (h.headers.get("Range") or "").replace(" ", ""))
    if m and (m[1] or m[2]):
        if m[1]:
            start, end = int(m[1]), min(int(m[2]) + 1, size) if m[2] else size
        else:
            start = max(size - int(m[2]), 0)
        if start >= size or start >= end:
            raise HubError(416, "Range not satisfiable", headers={**headers, "Content-Range": f"bytes */{size}"})
        status, headers["Content-Range"] = 206, f"bytes {start}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - start)
    headers["Content-Type"] = "application/octet-stream" if len(etag) == 64 else "text/plain; charset=utf-8"
    headers["Content-Disposition"] = f"inline; filename*=UTF-8''{quote(path.rsplit('/', 1)[-1])}"
    h.start(status, headers)
    if h.command == "GET":
        with opener() as f:
            f.seek(start)
            left = end - start
            while left:
                data = f.read(min(left, 1 << 20))
                if not data:  # shorter than announced: cut the connection rather than hang the client
                    h.close_connection = True
                    break
                h.wfile.write(data)
                left -= len(data)


# ---- writing
@route("POST", API + "/preupload/" + REV)
def preupload(h, type, ns, name, rev):
    d, pr = h.json(), flag(h.query.get("create_pr"))
    repo = h.repo(type, ns, name, write=not pr and not rev.startswith("refs/pr/"))
    h.need_write_token()
    head = repo.resolve(rev)
    ignore = [p for p in (d.get("gitIgnore") or "").splitlines() if p.strip() and not p.startswith("#")]
    out = []
    for f in d.get("files", []):
        lfs = repo.lfs_rule(head, f["path"], f["size"], base64.b64decode(f.get("sample") or ""))
        found, oid = repo.git.lookup(head, f["path"]), None
        if found and not found[0]:
            oid = repo.git.blob_info(found[1])[1] or found[1]
        name_ = f["path"].rsplit("/", 1)[-1]
        ignored = any(fnmatch.fnmatch(name_, p.strip("/")) or f["path"].startswith(p.strip("/") + "/") for p in ignore)
        out.append({"path": f["path"], "uploadMode": "lfs" if lfs else "regular", "shouldIgnore": ignored, "oid": oid})
    h.reply({"files": out, "commitOid": head})


@route("POST", WEB + r"\.git/info/lfs/objects/batch")
def lfs_batch(h, type, ns, name):
    d = h.json()
    h.repo(type, ns, name)
    up, objects, transfer = d.get("operation") == "upload", [], "basic"
    if up:
        h.need_user()
    for o in d.get("objects", []):
        sha, size = o["oid"], o["size"]
        item, path, sig = {"oid": sha, "size": size}, h.hub.lfs_path(sha), h.hub.sign(sha)
        if not re.fullmatch("[0-9a-f]{64}", sha):
            item["error"] = {"code": 422, "message": "oid is not a sha256"}
        elif up and not path.exists():
            verify = {"href": f"{h.base}/_lfs/{sha}/verify"}
            if h.hub.multipart and size > h.hub.multipart and "multipart" in d.get("transfers", []):
                transfer, n = "multipart", -(-size // h.hub.multipart)
                header = {f"{i:05d}": f"{h.base}/_lfs/{sha}/part/{i}?sig={sig}" for i in range(1, n + 1)}
                header["chunk_size"] = str(h.hub.multipart)
                href = f"{h.base}/_lfs/{sha}/complete?sig={sig}&parts={n}"
                item["actions"] = {"upload": {"href": href, "header": header}, "verify": verify}
            else:
                item["actions"] = {"upload": {"href": f"{h.base}/_lfs/{sha}?sig={sig}"}, "verify": verify}
        elif not up and path.exists():
            item["actions"] = {"download": {"href": f"{h.base}/_lfs/{sha}?sig={sig}"}}
        elif not up:
            item["error"] = {"code": 404, "message": "Object does not exist"}
        objects.append(item)
    h.reply({"transfer": transfer, "objects": objects}, ctype="application/vnd.git-lfs+json")


def signed(h, sha):
    if not hmac.compare_digest(h.query.get("sig", ""), h.hub.sign(sha)):
        raise HubError(403, "Request has expired")


def spool(h, sha, chunks):
    """Write chunks under a temporary name, and under the object's own name if the digest is right."""
    dest, digest = h.hub.lfs_path(sha), hashlib.sha256()
    dest.parent.mkdir(parents=True, exist_ok=True)
    fd, tmp = tempfile.mkstemp(dir=dest.parent)
    with os.fdopen(fd, "wb") as f:
        for data in chunks:
            digest.update(data)
            f.write(data)
    if digest.hexdigest() != sha:
        os.unlink(tmp)
        raise HubError(400, "The content does not have the announced sha256")
    os.replace(tmp, dest)


@route("PUT", "/_lfs/(?P<sha>[0-9a-f]{64})")
def lfs_put(h, sha):
    signed(h, sha)
    spool(h, sha, h.chunks())
    h.reply(data=b"", headers={"ETag": f'"{sha}"'})


@route("GET", "/_lfs/(?P<sha>[0-9a-f]{64})")
def lfs_get(h, sha):
    signed(h, sha)
    h.reply(data=h.hub.lfs_path(sha).read_bytes(), ctype="application/octet-stream")


@route("PUT", "/_lfs/(?P<sha>[0-9a-f]{64})/part/(?P<n>[0-9]+)")
def lfs_part(h, sha, n):
    signed(h, sha)
    data = h.body()
    atomic_write(h.hub.root / "parts" / f"{sha}.{int(n)}", data)
    h.reply(data=b"", headers={"ETag": f'"{hashlib.md5(data).hexdigest()}"'})


@route("POST", "/_lfs/(?P<sha>[0-9a-f]{64})/complete")
def lfs_complete(h, sha):
    signed(h, sha)
    h.json()
    parts = [h.hub.root / "parts" / f"{sha}.{i}" for i in range(1, int(h.query["parts"]) + 1)]
    spool(h, sha, (p.read_bytes() for p in parts))
    for p in parts:
        p.unlink()
    h.reply({"success": True})


@route("POST", "/_lfs/(?P<sha>[0-9a-f]{64})/verify")
def lfs_verify(h, sha):
    h.need_user()
    path, d = h.hub.lfs_path(sha), h.json()
    if not path.exists() or path.stat().st_size != d.get("size"):
        raise HubError(404, "Object does not exist")
    h.reply({"success": True})


# ---- xet (uploads only): the client chunks files into xorbs, then a shard says which chunks make which file. We turn
# the shard's files back into plain LFS objects at once and never announce X-Xet-Hash, so downloads are plain HTTP.
@route("GET", API + "/xet-(?P<kind>read|write)-token/" + REV)
def xet_token(h, type, ns, name, kind, rev):
    h.repo(type, ns, name)
    if kind == "write":
        h.need_user()
        if (
            not h.can_write(ns)
            and not flag(h.query.get("create_pr"))
            and not rev.startswith("refs/pr/")
            and rev != "None"
        ):
            raise HubError(403, "You don't have the rights to write in this repository")
    d = {"accessToken": h.hub.sign(f"xet-{kind}"), "exp": int(time.time()) + 3600, "casUrl": f"{h.base}/_cas"}
    names = {"X-Xet-Cas-Url": "casUrl", "X-Xet-Access-Token": "accessToken", "X-Xet-Token-Expiration": "exp"}
    h.reply(d, headers={k: str(d[v]) for k, v in names.items()})


def xet_write(h):
    if not hmac.compare_digest((h.headers.get("Authorization") or "")[7:], h.hub.sign("xet-write")):
        raise HubError(401, "Bad xet token")
    return h.body()


def xet_hex(b):  # a xet hash is printed as four little-endian 64-bit words
    return "".join(b[i : i + 8][::-1].hex() for i in range(0, 32, 8))


def xorb_chunks(data):
    """The uncompressed chunks of a xorb: 8-byte headers (version, u24 packed size, scheme, u24 size), then the data."""
    i = 0
    while i + 8 <= len(data) and data[i] == 0:
        packed, scheme = int.from_bytes(data[i + 1 : i + 4], "little"), data[i + 4]
        size, body = int.from_bytes(data[i + 5 : i + 8], "little"), data[i + 8 : i + 8 + packed]
        if scheme:
            import pyarrow

            body = pyarrow.decompress(body, decompressed_size=size, codec="lz4", asbytes=True)
        if scheme == 2:  # bytes grouped by their position modulo 4
            out, at = bytearray(size), 0
            for lane in range(4):
                n = (size - lane + 3) // 4
                out[lane::4], at = body[at : at + n], at + n
            body = bytes(out)
        yield body
        i += 8 + packed


@route("POST", r"/_cas/v1/xorbs/[\w-]+/(?P<hash>[0-9a-f]{64})")
def cas_xorb(h, hash):
    data, path = xet_write(h), h.hub.root / "xorbs" / hash
    new = not path.exists()
    if new:
        atomic_write(path, data)
    h.reply({"was_inserted": new})


@route("POST", "/_cas/v1/shards")
def cas_shard(h):
    data, i = xet_write(h), 48

    @functools.lru_cache(maxsize=4)
    def xorb(name):
        path = h.hub.root / "xorbs" / name
        if not path.exists():
            raise HubError(400, f"Unknown xorb {name}: clear the client's xet cache (HF_XET_CACHE)")
        return list(xorb_chunks(path.read_bytes()))

    while data[i : i + 32] != b"\xff" * 32:
        flags, n = int.from_bytes(data[i + 32 : i + 36], "little"), int.from_bytes(data[i + 36 : i + 40], "little")
        terms = [data[i + 48 * k : i + 48 * k + 48] for k in range(1, n + 1)]
        i += 48 * (1 + n + (n if flags >> 31 & 1 else 0))

        def chunks(terms=terms):
            for t in terms:
                yield from xorb(xet_hex(t))[int.from_bytes(t[40:44], "little") : int.from_bytes(t[44:48], "little")]

        if flags >> 30 & 1:
            sha, i = xet_hex(data[i : i + 32]), i + 48
            if not h.hub.lfs_path(sha).exists():
                spool(h, sha, chunks())
    h.reply({"result": 1})


def safe_path(path):
    path = (path or "").strip("/")
    if not path or any(p in ("", ".", "..", ".git") for p in path.split("/")) or "\\" in path or "\0" in path:
        raise HubError(400, f"Invalid path: {path!r}")
    return path


def apply_ops(repo, files, ops):
    for op in ops:
        key, v = op.get("key"), op.get("value") or {}
        path = safe_path(v.get("path"))
        if key == "file":
            data = v.get("content") or ""
            data = base64.b64decode(data) if v.get("encoding") == "base64" else data.encode()
            files[path] = repo.git.put("blob", data)
        elif key == "lfsFile":
            stored = repo.hub.lfs_path(v.get("oid") or "?")
            if not stored.exists():
                raise HubError(400, f"LFS pointer pointed to a file that does not exist: {path}")
            files[path] = repo.git.put("blob", (POINTER % (v["oid"], stored.stat().st_size)).encode())
        elif key == "deletedFile":
            if files.pop(path, None) is None:
                raise HubError(404, f"A file with this name doesn't exist: {path}", "EntryNotFound")
        elif key == "deletedFolder":
            gone = [p for p in files if p.startswith(path + "/")]
            if not gone:
                raise HubError(404, f"A folder with this name doesn't exist: {path}", "EntryNotFound")
            for p in gone:
                del files[p]
        else:
            raise HubError(400, f"Unknown operation {key!r}")
    for p in files:  # git cannot hold a file and a folder of one name
        if any(str(parent) in files for parent in list(Path(p).parents)[:-1]):
            raise HubError(400, f"{p} is below a file")
    return files


@route("POST", API + "/commit/" + REV)
def commit(h, type, ns, name, rev):
    raw, pr, u = h.body(), flag(h.query.get("create_pr")), h.need_write_token()
    repo = h.repo(type, ns, name)
    try:
        lines = [json.loads(line) for line in raw.splitlines() if line.strip()]
    except ValueError:
        raise HubError(400, "Body is not NDJSON") from None
    header = next((x["value"] for x in lines if x.get("key") == "header"), None)
    if not header or not header.get("summary"):
        raise HubError(400, "Commit header with a summary is needed")
    with repo.lock:
        ref, head, meta = repo.full_ref(rev), repo.resolve(rev), repo.meta
        num = int(ref.split("/")[2]) if ref.startswith("refs/pr/") else None
        owner = num and meta["discussions"].get(str(num), {}).get("author") == u["name"]
        if not pr and not h.can_write(ns) and not owner:
            raise HubError(403, "You don't have the rights to write in this repository; open a pull request instead")
        if repo.git.ref(ref) is None:
            raise HubError(404, f"{rev} is not a branch", "RevisionNotFound")
        parent = header.get("parentCommit")
        if parent and not head.startswith(parent):
            if not pr:
                raise HubError(412, "A commit has happened since. Please refresh and try again.")
            head = repo.resolve(parent)
        files = apply_ops(repo, repo.git.files(head), [x for x in lines if x.get("key") != "header"])
        message = header["summary"] + (f"\n\n{header['description']}" if header.get("description") else "")
        new = repo.git.write_commit(repo.git.write_tree(files), [head], u["name"], message)
        out = {
            "success": True,
            "commitOid": new,
            "commitUrl": f"{h.base}/{repo.prefix}{repo.id}/commit/{new}",
            "hookOutput": "",
        }
        if pr:
            disc = open_discussion(
                repo, u["name"], header["summary"], header.get("description") or "", True, rev, "open"
            )
            num, ref = disc["num"], f"refs/pr/{disc['num']}"
            out["pullRequestUrl"] = f"{h.base}/{repo.prefix}{repo.id}/discussions/{num}"
        repo.git.set_ref(ref, new)
        if num:
            add_event(repo, num, u["name"], "commit", {"subject": header["summary"], "oid": new})
    h.reply(out)


@route("POST DELETE", API + "/branch/(?P<branch>[^/]+)")
def branch(h, type, ns, name, branch):
    d = h.json()
    repo = h.repo(type, ns, name, write=True)
    ref = "refs/heads/" + branch
    if not REF_RE.fullmatch(branch):
        raise HubError(400, f"Invalid branch name {branch}")
    with repo.lock:
        if h.command == "DELETE":
            if branch == "main" or not repo.git.ref(ref):
                raise HubError(404 if branch != "main" else 403, f"Cannot delete {branch}", "RevisionNotFound")
            repo.git.set_ref(ref, None)
        elif repo.git.ref(ref):
            raise HubError(409, f"Reference already exists: {branch}")
        else:
            repo.git.set_ref(ref, repo.resolve(d.get("startingPoint") or "main"))
    h.reply({"success": True})


@route("POST DELETE", API + "/tag/" + REV)
def tag(h, type, ns, name, rev):
    d = h.json()
    repo = h.repo(type, ns, name, write=True)
    tag = rev if h.command == "DELETE" else d.get("tag") or ""
    if not REF_RE.fullmatch(tag):
        raise HubError(400, f"Invalid tag name {tag}")
    with repo.lock:
        exists = repo.git.ref("refs/tags/" + tag)
        if h.command == "DELETE":
            if not exists:
                raise HubError(404, f"Tag {tag} not found", "RevisionNotFound")
            repo.git.set_ref("refs/tags/" + tag, None)
        elif exists:
            raise HubError(409, f"Tag reference exists already: {tag}")
        else:
            repo.git.set_ref("refs/tags/" + tag, repo.resolve(rev))
    h.reply({"success": True})


# ---- discussions and pull requests
def add_event(repo, num, author, kind, data):
    meta = repo.meta
    d = meta["discussions"][str(num)]
    e = {
        "id": f"{num:08x}{len(d['events']):016x}",
        "type": kind,
        "author": {"name": author, "type": "user"},
        "createdAt": iso(time.time()),
        "data": data,
    }
    d["events"].append(e)
    repo.save(meta)
    return e


def comment_data(text):
    return {"edited": False, "hidden": False, "latest": {"raw": text, "html": text, "updatedAt": iso(time.time())}}


def open_discussion(repo, author, title, text, pr, base="main", status="open"):
    meta = repo.meta
    num = meta["nextNum"]
    meta["nextNum"] += 1
    meta["discussions"][str(num)] = d = {
        "num": num,
        "title": title,
        "author": author,
        "createdAt": iso(time.time()),
        "status": status,
        "isPullRequest": pr,
        "base": base,
        "baseCommit": repo.resolve(base) if pr else None,
        "events": [],
    }
    repo.save(meta)
    add_event(repo, num, author, "comment", comment_data(text))
    return d


def show(repo, d, details=False):
    out = {k: d[k] for k in ("num", "title", "createdAt", "status", "isPullRequest")}
    out["author"] = {"name": d["author"], "type": "user"}
    out["repo"] = {"name": repo.id, "type": repo.type[:-1]}
    out["numComments"] = sum(e["type"] == "comment" for e in d["events"])
    if details:
        out["events"] = d["events"]
        if d["isPullRequest"]:
            out["changes"] = {"base": f"refs/heads/{d['base']}", "mergeCommitId": d.get("mergeCommitId")}
            out["filesWithConflicts"] = [] if d["status"] in ("merged", "closed") else merge_plan(repo, d)[1]
            out["diff"] = diff(repo, d)
    return out


def merge_plan(repo, d):
    """(files of the merge, paths in conflict)"""
    base = repo.git.files(d["baseCommit"])
    ours, theirs = repo.git.files(repo.resolve(d["base"])), repo.git.files(repo.resolve(f"refs/pr/{d['num']}"))
    out, conflicts = dict(ours), []
    for p in set(base) | set(theirs):
        if base.get(p) != theirs.get(p):
            if ours.get(p) not in (base.get(p), theirs.get(p)):
                conflicts.append(p)
            elif theirs.get(p) is None:
                out.pop(p, None)
            else:
                out[p] = theirs[p]
    return out, sorted(conflicts)


def diff(repo, d):
    a, b = repo.git.files(d["baseCommit"]), repo.git.files(repo.resolve(f"refs/pr/{d['num']}"))
    out = []
    for p in sorted(p for p in set(a) | set(b) if a.get(p) != b.get(p)):
        old, new = (repo.git.get(o[p]).decode("utf-8", "replace").splitlines(True) if p in o else [] for o in (a, b))
        out.append(f"diff --git a/{p} b/{p}\n" + "".join(difflib.unified_diff(old, new, f"a/{p}", f"b/{p}")))
    return "".join(out)


@route("GET POST", API + "/discussions")
def discussions(h, type, ns, name):
    repo = h.repo(type, ns, name)
    if h.command == "POST":
        d, u = h.json(), h.need_user()
        pr = flag(d.get("pullRequest"))
        if len((d.get("title") or "").strip()) < 3:
            raise HubError(400, "Title is too short")
        with repo.lock:
            disc = open_discussion(
                repo, u["name"], d["title"], d.get("description") or "", pr, "main", "draft" if pr else "open"
            )
            if pr:
                repo.git.set_ref(f"refs/pr/{disc['num']}", disc["baseCommit"])
        h.reply(
            {"num": disc["num"], "pullRequest": pr, "url": f"{h.base}/{repo.prefix}{repo.id}/discussions/{disc['num']}"}
        )
        return
    q, found = h.query, sorted(repo.meta["discussions"].values(), key=lambda d: -d["num"])
    if q.get("type") in ("pull_request", "discussion"):
        found = [d for d in found if d["isPullRequest"] == (q["type"] == "pull_request")]
    if q.get("status") in ("open", "closed"):
        found = [d for d in found if (d["status"] in ("open", "draft")) == (q["status"] == "open")]
    if q.get("author"):
        found = [d for d in found if d["author"] == q["author"]]
    start = int(q.get("p") or 0) * 10
    h.reply({"count": len(found), "start": start, "discussions": [show(repo, d) for d in found[start : start + 10]]})


@route("GET POST", API + "/discussions/(?P<num>[0-9]+)(?:/(?P<action>comment|status|title|merge))?")
def discussion(h, type, ns, name, num, action):
    body = h.json() if h.command == "POST" else None
    repo = h.repo(type, ns, name)
    with repo.lock:
        meta = repo.meta
        d = meta["discussions"].get(num)
        if d is None:
            raise HubError(404, "Discussion not found")
        if h.command == "GET":
            h.reply(show(repo, d, details=True))
            return
        u, n = h.need_user(), d["num"]
        if action == "comment":
            h.reply({"newMessage": add_event(repo, n, u["name"], "comment", comment_data(body["comment"]))})
            return
        if not h.can_write(ns) and d["author"] != u["name"]:
            raise HubError(403, "You cannot change this discussion")
        if action == "title":
            old, d["title"] = d["title"], body["title"]
            repo.save(meta)
            h.reply({"newTitle": add_event(repo, n, u["name"], "title-change", {"from": old, "to": body["title"]})})
            return
        if action == "status":
            d["status"] = body["status"]
            repo.save(meta)
            h.reply({"newStatus": add_event(repo, n, u["name"], "status-change", {"status": body["status"]})})
            return
        if action != "merge" or not d["isPullRequest"]:
            raise HubError(404, "No such action")
        if not h.can_write(ns):
            raise HubError(403, "You cannot merge here")
        if d["status"] not in ("open", "draft"):
            raise HubError(409, f"Pull request is {d['status']}")
        files, conflicts = merge_plan(repo, d)
        if conflicts:
            raise HubError(409, f"Conflicts in {', '.join(conflicts)}")
        head = repo.resolve(d["base"])
        message = f"{d['title']} (#{n})"
        new = repo.git.write_commit(
            repo.git.write_tree(files), [head, repo.resolve(f"refs/pr/{n}")], u["name"], message
        )
        repo.git.set_ref(f"refs/heads/{d['base']}", new)
        d.update(status="merged", mergeCommitId=new)
        repo.save(meta)
        add_event(repo, n, u["name"], "status-change", {"status": "merged"})
    h.reply({"success": True, "mergeCommitId": new})


# ---------------------------------------------------------------------------------------------- running it
def make_server(root, users=None, host="127.0.0.1", port=0, multipart=None, trace=None):
    """A server ready for serve_forever(); its port is server.server_address[1]."""
    users = users or {"tester": {"token": "hf_tester", "orgs": ["*"]}}
    handler = type("BoundHandler", (Handler,), {"hub": Hub(root, users, multipart, trace)})
    server = type("Server", (ThreadingHTTPServer,), {"request_queue_size": 128, "daemon_threads": True})
    return server((host, port), handler)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--root", required=True)
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--port", type=int, default=8765)
    ap.add_argument("--user", action="append", default=[], metavar="NAME=TOKEN[:ORG,ORG[:read]]")
    ap.add_argument("--multipart", type=int, help="LFS uploads above this many bytes go in parts of this size")
    ap.add_argument("--trace", help="append one JSON line per request to this file")
    a = ap.parse_args()
    users = {}
    for spec in a.user:
        name, _, rest = spec.partition("=")
        token, _, rest = rest.partition(":")
        orgs, _, role = rest.partition(":")
        users[name] = {"token": token, "orgs": [o for o in orgs.split(",") if o], "role": role or "write"}
    server = make_server(a.root, users, a.host, a.port, a.multipart, a.trace)
    print(f"localhub on http://{a.host}:{server.server_address[1]} (root {a.root})", file=sys.stderr, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
