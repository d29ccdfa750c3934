"""Dataset readers, with one module for each family of datasets."""
