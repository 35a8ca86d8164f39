"""Every peer that is installed answers as dense arrays do, and a peer that does not is found out before it is timed."""

from __future__ import annotations

import numpy as np
import pytest
from bench import suite_masks, synthetic
from bench.peers import BASELINE, Masks, Peer, find_peers
from pycocotools import mask as coco
from scipy import ndimage

PEERS, ABSENT = find_peers()
SIZE = (90, 120)


def stack(masks: Masks) -> np.ndarray:
    """`(n, height, width) int64`."""
    return np.stack([coco.decode(rle) for rle in masks.rles]).astype(np.int64)


def greedy(dense: np.ndarray) -> list[bool]:
    keep = [False] * len(dense)
    for i in sorted(range(len(dense)), key=lambda i: (dense[i].sum(), i), reverse=True):
        ious = [(dense[i] & dense[k]).sum() / (dense[i] | dense[k]).sum() for k in range(len(dense)) if keep[k]]
        keep[i] = all(iou <= 0.5 for iou in ious)
    return keep


def offering(task: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("peer", [p for p in PEERS if task in p.tasks], ids=lambda peer: peer.name)


@pytest.mark.parametrize("kind", synthetic.KINDS)
class TestPeers:
    @offering("pairs")
    def test_pairs(self, peer: Peer, kind: str) -> None:
        a, b = suite_masks.aligned(np.random.default_rng(0), kind, 9, SIZE, (5, 30))
        expected = (stack(a) & stack(b)).sum(axis=(1, 2))
        assert peer.tasks["pairs"](a, b).tolist() == expected.tolist()

    @offering("matrix")
    def test_matrix(self, peer: Peer, kind: str) -> None:
        a, b = suite_masks.image(np.random.default_rng(0), kind, 7, SIZE, synthetic.overlapping)
        expected = np.einsum("ihw,jhw->ij", stack(a), stack(b))
        assert peer.tasks["matrix"](a, b).tolist() == expected.tolist()

    @offering("tubes")
    def test_tubes(self, peer: Peer, kind: str) -> None:
        a, b = suite_masks.video(np.random.default_rng(0), kind, 4, 3, SIZE)
        left, right = (stack(side).reshape(4, 3, *SIZE) for side in (a, b))
        assert peer.tasks["tubes"](a, b).tolist() == np.einsum("fihw,fjhw->ij", left, right).tolist()

    @offering("nms")
    def test_nms(self, peer: Peer, kind: str) -> None:
        a, _ = suite_masks.crowd(np.random.default_rng(0), kind, 24, SIZE)
        expected = greedy(stack(a).astype(bool))
        assert 0 < sum(expected) < 24
        assert peer.tasks["nms"](a).tolist() == expected

    @offering("outlines")
    def test_outlines(self, peer: Peer, kind: str) -> None:
        a, b = suite_masks.aligned(np.random.default_rng(0), kind, 5, SIZE, (5, 30))
        # The diagonal is 150: a depth of 3, so three erosions, and beyond the border there is background.
        rings = [
            [m & ~ndimage.binary_erosion(m, np.ones((3, 3)), iterations=3) for m in stack(side).astype(bool)]
            for side in (a, b)
        ]
        found = peer.tasks["outlines"](a, b)
        assert found[:, 0].tolist() == [int((x & y).sum()) for x, y in zip(*rings, strict=True)]
        assert found[:, 1].tolist() == [int((x | y).sum()) for x, y in zip(*rings, strict=True)]
        assert found.tolist() == PEERS[0].tasks["outlines"](a, b).tolist()


def test_find_peers_lists_installed_libraries() -> None:
    names = [peer.name for peer in PEERS]
    assert names[0] == BASELINE
    assert "ours, pycocotools" in names
    for name in ("faster-coco-eval", "hotcoco", "rlemasklib"):
        assert (name in names) != any(line.startswith(f"{name}: left out") for line in ABSENT)


def test_a_peer_that_differs_is_not_timed() -> None:
    def wrong(a: Masks, b: Masks) -> np.ndarray:
        raise_by_one: np.ndarray = PEERS[0].tasks["pairs"](a, b)
        raise_by_one[3] += 1
        return raise_by_one

    a, b = suite_masks.aligned(np.random.default_rng(0), "smooth", 5, SIZE, (5, 30))
    with pytest.raises(ValueError, match=r"pairs: careless and pycocotools loop differ at 1 of 5 places, first at 3"):
        suite_masks.measure([PEERS[0], Peer("careless", {"pairs": wrong})], "pairs", a, b, True)
