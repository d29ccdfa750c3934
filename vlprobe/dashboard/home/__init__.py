"""Home: a real failure at once, three numbers, the models, four doors."""
