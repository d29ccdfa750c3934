"""Language models that write texts, on a server or on this machine; their answers are logged."""
