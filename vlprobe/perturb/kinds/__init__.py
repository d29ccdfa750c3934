"""Kinds of caption edit that LGIP lacks: negation, relation, attributes, word order, case, punctuation, typos."""
