"""What the project asks of a Hub, one check each: run by a process of its own that knows nothing but `HF_ENDPOINT`.

Checks stand on what earlier ones left. `python hub_client_checks.py` prints a JSON object: for each check nothing, or
what went wrong.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, DatasetDict, Features, Image, Value, get_dataset_config_names, load_dataset
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationCopy,
    CommitOperationDelete,
    HfApi,
    HfFileSystem,
    hf_hub_download,
    snapshot_download,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from PIL import Image as Picture

NAMESPACE = "acme"
DATA, MODEL, SPACE, IMAGES = (f"{NAMESPACE}/{kind}" for kind in ("data", "model", "space", "images"))
BIG = np.random.default_rng(0).integers(0, 256, 3_000_000, dtype=np.uint8).tobytes()
TEMP = Path(tempfile.mkdtemp(prefix="client-checks-"))

api = HfApi()
CHECKS: dict[str, Callable[[], None]] = {}


def check(work: Callable[[], None]) -> Callable[[], None]:
    CHECKS[work.__name__] = work
    return work


@contextlib.contextmanager
def refused(kind: type[Exception] = HfHubHTTPError, status: int | None = None) -> Iterator[None]:
    try:
        yield
    except kind as error:
        found = getattr(getattr(error, "response", None), "status_code", None)
        assert status in (None, found), f"expected {status}, got {found}"
    else:
        raise AssertionError(f"no {kind.__name__}")


def put(data: bytes, path: str, repo: str = DATA, kind: str = "dataset", **more: object) -> object:
    return api.upload_file(path_or_fileobj=data, path_in_repo=path, repo_id=repo, repo_type=kind, **more)


def files(repo: str = DATA, kind: str = "dataset", **more: object) -> set[str]:
    return set(api.list_repo_files(repo, repo_type=kind, **more))


def get(path: str, **more: object) -> bytes:
    return Path(hf_hub_download(DATA, path, repo_type="dataset", **more)).read_bytes()


@check
def who_am_i() -> None:
    assert api.whoami()["name"] == "alice"


@check
def repos_are_made() -> None:
    url = api.create_repo(DATA, repo_type="dataset")
    assert (url.repo_id, url.repo_type) == (DATA, "dataset")
    api.create_repo(DATA, repo_type="dataset", exist_ok=True)
    with refused(status=409):
        api.create_repo(DATA, repo_type="dataset")
    assert api.create_repo(MODEL).repo_id == MODEL
    assert api.create_repo(SPACE, repo_type="space", space_sdk="gradio").repo_type == "space"


@check
def small_files() -> None:
    for repo, kind in ((DATA, "dataset"), (MODEL, "model"), (SPACE, "space")):
        done = put(b"hello world\n", "a/hello.txt", repo, kind)
        assert done.repo_url.repo_id == repo
    # The same again makes no commit.
    again = put(b"hello world\n", "a/hello.txt")
    assert again.oid == api.dataset_info(DATA).sha
    done = put(b"oid", "oid.txt")
    assert len(done.oid) == 40
    assert done.oid == api.dataset_info(DATA).sha


@check
def cards_are_validated() -> None:
    put(b"---\nlicense: mit\ntags: [x]\n---\n# hi\n", "README.md")
    with refused(ValueError):
        put(b"---\nlicense: [\n---\n# hi\n", "README.md", MODEL, "model")


@check
def large_files() -> None:
    put(BIG, "data/big.bin")
    (info,) = api.get_paths_info(DATA, "data/big.bin", repo_type="dataset")
    assert (info.size, info.lfs.sha256) == (len(BIG), hashlib.sha256(BIG).hexdigest())
    path = TEMP / "t.parquet"
    pq.write_table(pa.table({"x": list(range(50_000))}), path)
    put(str(path), "data/t.parquet")
    with path.open("rb") as file:
        put(file, "data/t2.parquet")
    infos = api.get_paths_info(DATA, ["data/t.parquet", "data/t2.parquet"], repo_type="dataset")
    assert [bool(info.lfs) for info in infos] == [True, True]


@check
def folders() -> None:
    folder = TEMP / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "x.json").write_text("{}")
    (folder / "sub" / "y.npy").write_bytes(BIG[:200_000])
    (folder / "skip.log").write_text("no")
    where = {"folder_path": folder, "path_in_repo": "fold", "repo_id": DATA, "repo_type": "dataset"}
    api.upload_folder(**where, ignore_patterns=["*.log"])
    assert {"fold/x.json", "fold/sub/y.npy"} <= files()
    assert "fold/skip.log" not in files()
    (folder / "x.json").rename(folder / "z.json")
    api.upload_folder(**where, ignore_patterns=["*.log"], delete_patterns="*.json")
    assert "fold/z.json" in files()
    assert "fold/x.json" not in files()


@check
def commits_of_many_operations() -> None:
    operations = [
        CommitOperationAdd("n/one.txt", b"1"),
        CommitOperationAdd("n/two.bin", BIG[:50_000]),
        CommitOperationCopy("data/big.bin", "n/copy.bin"),
        CommitOperationCopy("a/hello.txt", "n/copy.txt"),
        CommitOperationDelete("data/t2.parquet"),
        CommitOperationDelete("fold/"),
    ]
    head = api.dataset_info(DATA).sha
    api.create_commit(
        DATA, operations, commit_message="many", commit_description="why", parent_commit=head, repo_type="dataset"
    )
    found = files()
    assert {"n/one.txt", "n/two.bin", "n/copy.bin", "n/copy.txt"} <= found
    assert not any(path.startswith("fold/") or path == "data/t2.parquet" for path in found)


@check
def a_stale_parent_is_refused() -> None:
    first = api.list_repo_commits(DATA, repo_type="dataset")[-1].commit_id
    stale = [CommitOperationAdd("s.txt", b"s")]
    with refused(status=412):
        api.create_commit(DATA, stale, repo_type="dataset", commit_message="stale", parent_commit=first)


@check
def pull_requests() -> None:
    operations = [CommitOperationAdd("pr/file.txt", b"from pr"), CommitOperationAdd("pr/file.bin", BIG[:80_000])]
    done = api.create_commit(DATA, operations, repo_type="dataset", commit_message="my pr", create_pr=True)
    assert done.pr_revision == f"refs/pr/{done.pr_num}"
    assert "pr/file.txt" not in files()
    assert "pr/file.txt" in files(revision=done.pr_revision)
    assert get("pr/file.bin", revision=done.pr_revision) == BIG[:80_000]
    put(b"more", "pr/more.txt", revision=done.pr_revision)
    details = api.get_discussion_details(DATA, done.pr_num, repo_type="dataset")
    assert details.is_pull_request
    assert details.status in ("open", "draft")
    refs = api.list_repo_refs(DATA, repo_type="dataset", include_pull_requests=True)
    assert [ref.ref for ref in refs.pull_requests] == [done.pr_revision]
    api.comment_discussion(DATA, done.pr_num, "looks good", repo_type="dataset")
    assert len(list(api.get_repo_discussions(DATA, repo_type="dataset"))) == 1
    api.merge_pull_request(DATA, done.pr_num, repo_type="dataset")
    assert {"pr/file.txt", "pr/more.txt"} <= files()
    done = api.upload_folder(
        folder_path=TEMP / "folder",
        path_in_repo="viapr",
        repo_id=DATA,
        repo_type="dataset",
        create_pr=True,
        commit_message="folder pr",
    )
    assert "viapr/sub/y.npy" in files(revision=done.pr_revision)


@check
def listings() -> None:
    assert {"README.md", "data/big.bin"} <= files()
    many = [CommitOperationAdd(f"many/{i:04d}.txt", str(i).encode()) for i in range(1100)]
    api.create_commit(MODEL, many, commit_message="lots")
    assert len(list(api.list_repo_tree(MODEL, "many"))) == 1100  # more than a page
    assert next(iter(api.list_repo_tree(MODEL, "a", expand=True))).last_commit.title
    assert DATA in [info.id for info in api.list_datasets(author=NAMESPACE)]
    assert MODEL in [info.id for info in api.list_models(author=NAMESPACE)]


@check
def repo_infos() -> None:
    info = api.dataset_info(DATA, files_metadata=True)
    siblings = {one.rfilename: one for one in info.siblings}
    assert siblings["data/big.bin"].lfs["sha256"]
    assert siblings["a/hello.txt"].size == 12
    assert info.card_data.license == "mit"
    assert (api.model_info(MODEL).id, api.space_info(SPACE).sdk) == (MODEL, "gradio")
    assert api.repo_info(DATA, repo_type="dataset", revision=info.sha).sha == info.sha
    api.dataset_info(DATA, expand=["sha", "tags"])


@check
def what_is_not_there() -> None:
    with refused(RepositoryNotFoundError):
        api.dataset_info(f"{NAMESPACE}/nope")
    with refused(RevisionNotFoundError):
        api.dataset_info(DATA, revision="nope")
    with refused(EntryNotFoundError):
        get("nope.txt")
    assert api.file_exists(DATA, "README.md", repo_type="dataset")
    assert not api.file_exists(DATA, "zz", repo_type="dataset")
    assert not api.repo_exists(f"{NAMESPACE}/zz")


@check
def downloads() -> None:
    assert get("a/hello.txt") == b"hello world\n"
    assert get("data/big.bin") == BIG
    assert get("README.md", revision=api.dataset_info(DATA).sha)
    get("data/big.bin", local_dir=TEMP / "local")
    assert (TEMP / "local" / "data" / "big.bin").read_bytes() == BIG
    whole = Path(snapshot_download(DATA, repo_type="dataset"))
    assert (whole / "data" / "big.bin").exists()
    assert (whole / "README.md").exists()
    part = Path(snapshot_download(SPACE, repo_type="space", allow_patterns="*.md", local_dir=TEMP / "space"))
    assert list(part.iterdir())


@check
def branches_and_tags() -> None:
    api.create_branch(DATA, branch="feat/y", repo_type="dataset")
    api.delete_branch(DATA, branch="feat/y", repo_type="dataset")
    api.create_branch(DATA, branch="dev", repo_type="dataset")
    api.create_tag(DATA, tag="v1", repo_type="dataset")
    api.create_tag(DATA, tag="v1", repo_type="dataset", exist_ok=True)
    put(b"b", "b.txt", revision="dev")
    assert "b.txt" in files(revision="dev")
    assert "b.txt" not in files(revision="v1")
    refs = api.list_repo_refs(DATA, repo_type="dataset")
    assert {branch.name for branch in refs.branches} == {"main", "dev"}
    assert [tag.name for tag in refs.tags] == ["v1"]
    assert api.list_repo_commits(DATA, repo_type="dataset")[-1].title
    api.delete_branch(DATA, branch="dev", repo_type="dataset")
    api.delete_tag(DATA, tag="v1", repo_type="dataset")


@check
def the_file_system() -> None:
    fs, root = HfFileSystem(skip_instance_cache=True), f"datasets/{DATA}"
    big = f"{root}/data/big.bin"
    assert f"{root}/README.md" in fs.ls(root, detail=False)
    assert fs.glob(f"{root}/data/*.bin") == [big]
    assert f"{root}/a/hello.txt" in fs.find(root)
    assert fs.info(big)["size"] == len(BIG)
    assert fs.isdir(f"{root}/data")
    assert not fs.exists(f"{root}/none")
    with fs.open(big, block_size=100_000) as file:
        file.seek(1_234_567)
        assert file.read(1000) == BIG[1_234_567:1_235_567]
        file.seek(-10, 2)
        assert file.read() == BIG[-10:]
    with fs.open(big, block_size=0) as file:
        assert file.read() == BIG
        assert file.read() == b""
    assert fs.read_bytes(big, start=5, end=20) == BIG[5:20]
    fs.get_file(big, str(TEMP / "got.bin"))
    assert (TEMP / "got.bin").read_bytes() == BIG
    with fs.open(f"{root}/w.txt", "w") as file:
        file.write("written")
    assert fs.read_text(f"{root}/w.txt") == "written"
    fs.ls(root, detail=True, expand_info=True)
    fs.rm(f"{root}/w.txt")
    assert len(pd.read_parquet(f"hf://{root}/data/t.parquet")) == 50_000


@check
def datasets_are_pushed() -> None:
    def drawn(count: int, seed: int) -> Dataset:
        rng = np.random.default_rng(seed)
        pictures = [Picture.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)) for _ in range(count)]
        features = Features({"id": Value("int64"), "image": Image()})
        return Dataset.from_dict({"id": list(range(count)), "image": pictures}, features=features)

    DatasetDict(train=drawn(40, 1), test=drawn(10, 2)).push_to_hub(IMAGES, private=False)
    Dataset.from_dict({"q": ["a", "b"]}).push_to_hub(IMAGES, "text", split="train")
    Dataset.from_dict({"q": ["a", "b", "c"]}).push_to_hub(IMAGES, "text", split="train", commit_message="again")
    done = Dataset.from_dict({"q": ["pr"]}).push_to_hub(IMAGES, "text", split="train", create_pr=True)
    assert load_dataset(IMAGES, "text", split="train", revision=done.pr_revision)[0]["q"] == "pr"


@check
def datasets_are_loaded() -> None:
    found = load_dataset(IMAGES, "default")
    assert found["train"].num_rows == 40
    assert found["test"][0]["image"].size == (32, 32)
    assert load_dataset(IMAGES, "text", split="train").num_rows == 3
    assert set(get_dataset_config_names(IMAGES)) == {"default", "text"}


@check
def datasets_are_streamed() -> None:
    rows = list(load_dataset(IMAGES, "default", split="train", streaming=True))
    assert len(rows) == 40
    assert rows[3]["image"].size == (32, 32)
    assert next(iter(load_dataset(IMAGES, "default", split="test", streaming=True)))["id"] == 0


@check
def parquet_is_loaded() -> None:
    assert load_dataset(DATA, data_files="data/t.parquet", split="train").num_rows == 50_000
    sha = api.dataset_info(DATA).sha
    stream = load_dataset(DATA, data_files="data/t.parquet", split="train", revision=sha, streaming=True)
    assert next(iter(stream.take(1)))["x"] == 0
    url = f"hf://datasets/{DATA}/data/t.parquet"
    assert load_dataset("parquet", data_files=url, split="train").num_rows == 50_000


@check
def private_repos_are_hidden() -> None:
    repo = f"{NAMESPACE}/private"
    api.create_repo(repo, repo_type="dataset", private=True)
    with refused(RepositoryNotFoundError):
        HfApi(token=False).dataset_info(repo)
    assert api.dataset_info(repo).private
    api.update_repo_settings(repo, repo_type="dataset", private=False)
    HfApi(token=False).dataset_info(repo)
    api.delete_repo(repo, repo_type="dataset")


@check
def repos_are_deleted() -> None:
    for repo, kind in ((DATA, "dataset"), (MODEL, "model"), (SPACE, "space"), (IMAGES, "dataset")):
        api.delete_repo(repo, repo_type=kind)
    assert not api.repo_exists(DATA, repo_type="dataset")
    with refused(RepositoryNotFoundError):
        api.delete_repo(DATA, repo_type="dataset")
    api.delete_repo(DATA, repo_type="dataset", missing_ok=True)


def main() -> None:
    warnings.simplefilter("ignore")
    found: dict[str, str] = {}
    for name, work in CHECKS.items():
        try:
            work()
            found[name] = ""
        except Exception as error:
            found[name] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]
    shutil.rmtree(TEMP, ignore_errors=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
