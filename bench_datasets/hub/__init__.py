"""Publishing to the Hugging Face Hub and reading back: commits that land once, results, cards, leaderboards."""
