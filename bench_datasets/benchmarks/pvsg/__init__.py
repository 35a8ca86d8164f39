"""PVSG: videos with panoptic mask tubes and relations."""
