"""Expression sets of the InstanceBench sample, by drawing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SOURCES: Mapping[str, tuple[str, ...]] = {
    "coco": ("park", "street", "kitchen", "match"),
    "openimages": ("harbour", "balloons", "car_park"),
}
"""The drawings by the source that they stand for; none of them is of that source."""


class Ask(NamedTuple):
    """An expression: its role, its words, and the operation that it takes to follow them."""

    role: str
    text: str
    operation: str


class Set(NamedTuple):
    """Expressions of one target.

    Attributes:
        scene: the drawing.
        target: the name of the thing meant; all of its kind are candidates.
        asks: the expressions.
        donor: name of the thing that a text swap asks for instead: the minimal expression of its set in this scene.
        crowd: a pattern of names; what they show is one crowd region, and no candidate of its own.
    """

    scene: str
    target: str
    asks: tuple[Ask, ...]
    donor: str | None = None
    crowd: str | None = None


def _set(
    scene: str,
    target: str,
    *asks: tuple[str, str],
    paraphrase: str,
    donor: str | None = None,
    crowd: str | None = None,
) -> Set:
    """A set whose first ask is the minimal, whose second the variant; further ones are extras.

    Args:
        scene: the drawing.
        target: what is meant.
        asks: words and operation.
        paraphrase: the minimal expression in other words; none where empty.
        donor: as in `Set`.
        crowd: as in `Set`.
    """
    roles = ("minimal", "variant", *["extra"] * (len(asks) - 2))
    made = [Ask(role, *ask) for role, ask in zip(roles, asks, strict=True)]
    if paraphrase:
        made.insert(2, Ask("paraphrase", paraphrase, asks[0][1]))
    return Set(scene, target, tuple(made), donor, crowd)


SETS: tuple[Set, ...] = (
    _set(
        "park",
        "dog/on the leash",
        ("the dog on the leash", "single_anchor_relation"),
        ("the brown dog", "target_evidence"),
        ("the dog that is not white", "negation_or_exclusion"),
        paraphrase="the leashed dog",
        donor="dog/free",
    ),
    _set(
        "park",
        "dog/free",
        ("the smaller one of the two dogs", "relative_selection"),
        ("the white dog", "target_evidence"),
        paraphrase="of the two dogs, the smaller one",
        donor="dog/on the leash",
    ),
    _set(
        "park",
        "person/with the leash",
        ("the second person from the left", "ordinal"),
        ("the person between the girl with the balloon and the brown dog", "multi_anchor_relation"),
        ("the person who holds the leash", "single_anchor_relation"),
        paraphrase="the person who comes second, counted from the left",
        donor="person/on the right",
    ),
    _set(
        "park",
        "person/on the right",
        ("the person in the green shirt", "target_evidence"),
        ("the rightmost person", "extremal"),
        ("the person holding neither a balloon nor a leash", "negation_or_exclusion"),
        paraphrase="the person whose shirt is green",
    ),
    _set(
        "park",
        "bird/on the fence, right",
        ("the blue bird", "target_evidence"),
        ("the bird on the fence that is not red", "negation_or_exclusion"),
        ("the right one of the two birds on the fence", "subgroup_based"),
        paraphrase="the bird with blue feathers",
        donor="bird/on the lawn",
    ),
    _set(
        "park",
        "bird/on the lawn",
        ("the bird on the lawn", "spatial_relation"),
        ("the lowest bird", "extremal"),
        paraphrase="the bird in the grass",
    ),
    _set(
        "street",
        "car/blue",
        ("the blue car", "target_evidence"),
        ("the car between the green car and the yellow car", "multi_anchor_relation"),
        paraphrase="the car painted blue",
        donor="car/yellow",
    ),
    _set(
        "street",
        "car/yellow",
        ("the rightmost car", "extremal"),
        ("the car in front of the shop whose sign reads FLOWERS", "nested_grounding"),
        ("the car that is not in front of the bus", "negation_or_exclusion"),
        paraphrase="the car farthest to the right",
        donor="car/blue",
    ),
    _set(
        "kitchen",
        "jar/SALT",
        ("the second jar from the left", "ordinal"),
        ("the jar labelled SALT", "target_evidence"),
        paraphrase="the jar that is second, counted from the left",
    ),
    _set(
        "kitchen",
        "mug/white",
        ("the mug with a spoon in it", "spatial_relation"),
        ("the second mug from the left", "ordinal"),
        ("the mug that is not blue", "negation_or_exclusion"),
        paraphrase="the mug that a spoon stands in",
    ),
    _set(
        "kitchen",
        "apple/on the table, green",
        ("the lowest apple", "extremal"),
        ("the apple beside the small mug", "spatial_relation"),
        ("the apple that is not in the bowl", "negation_or_exclusion"),
        paraphrase="the apple that lies lowest",
    ),
    _set(
        "match",
        "player/red 7",
        ("the player kicking the ball", "single_anchor_relation"),
        ("the middle one of the three players in red", "subgroup_based"),
        ("the player between number 10 and number 8", "multi_anchor_relation"),
        paraphrase="the player who strikes the ball",
        donor="player/white 8",
    ),
    _set(
        "match",
        "player/white 8",
        ("the player wearing number 8", "target_evidence"),
        ("the player just to the right of the one who kicks the ball", "nested_grounding"),
        paraphrase="the player whose shirt bears the number 8",
        donor="player/red 7",
    ),
    _set(
        "harbour",
        "sailboat/striped",
        ("the boat with the striped sail", "target_evidence"),
        ("the boat in front of the lighthouse", "spatial_relation"),
        ("the rightmost boat", "extremal"),
        paraphrase="the boat whose sail has stripes",
        donor="sailboat/red",
    ),
    _set(
        "harbour",
        "sailboat/white, far",
        ("the smallest boat", "extremal"),
        ("the boat behind the one that is named LUNA", "nested_grounding"),
        ("the boat with plain white sails that bears no name", "negation_or_exclusion"),
        paraphrase="the tiniest boat",
    ),
    _set(
        "harbour",
        "sailboat/red",
        ("the leftmost boat", "extremal"),
        ("the boat with red sails", "target_evidence"),
        paraphrase="the boat farthest to the left",
        donor="sailboat/striped",
    ),
    _set(
        "balloons",
        "hot-air balloon/red, large",
        ("the largest balloon", "extremal"),
        ("the balloon between the blue-and-white striped one and the plain blue one", "multi_anchor_relation"),
        ("the balloon that is red all over", "target_evidence"),
        paraphrase="the biggest balloon",
    ),
    _set(
        "balloons",
        "hot-air balloon/blue",
        ("the lowest balloon", "extremal"),
        ("the larger one of the blue and the purple balloon", "relative_selection"),
        paraphrase="the balloon that flies lowest",
        donor="hot-air balloon/yellow, striped",
    ),
    _set(
        "balloons",
        "hot-air balloon/yellow, striped",
        ("the second balloon from the right", "ordinal"),
        ("the striped balloon that has no blue in it", "negation_or_exclusion"),
        ("the right one of the two striped balloons", "subgroup_based"),
        paraphrase="the balloon that is second, counted from the right",
    ),
    _set(
        "car_park",
        "car/on the lane 276",
        ("the white one of the cars that are driving", "subgroup_based"),
        ("the driving car that is neither red nor blue", "negation_or_exclusion"),
        paraphrase="",
        crowd="car/?.*",
    ),
)
"""The sample's sets, in the order of the manifest."""
