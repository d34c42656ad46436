"""What the papers compare their algorithms with, for comparison only."""
