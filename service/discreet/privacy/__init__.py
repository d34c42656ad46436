"""What is released and what it costs. Pure: numpy, scipy, OpenDP and errors only."""
