"""Language models that write texts: asked at a server, or on this machine; what they answer is kept."""
