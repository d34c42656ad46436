"""Profiles made private on a person's own device, after EpicRec (Shen and Jin, CCS 2016).

    catalogue        items and their categories, and what a person agreed to (public)
    quantification   from words to an epsilon (public)
    calibration      the least noise for an epsilon (public)
    perturbation     noisy counts by category, and the items that are sent; the guarantee card
    expectation      what public popularity says about noisy counts
    sanitisation     from noisy counts back to a set of items

Pure: numpy, `discreet.privacy` and `discreet.errors`. The hub and research use it.
"""
