"""Caption edits beyond LGIP's: negation, relation, attributes, word order, letter case, punctuation, typos."""
