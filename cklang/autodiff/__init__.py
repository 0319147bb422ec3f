# SPDX-License-Identifier: MIT
"""Reverse-mode differentiation of the mini-IR.

:mod:`.transform` builds the backward function of a function, with one rule for each op
(:mod:`.rules`). :mod:`cklang.gradients` makes ops of it.
"""
