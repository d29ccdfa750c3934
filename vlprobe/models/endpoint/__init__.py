"""Models that a server answers for, over HTTP: how they are asked, what that costs, what is kept."""
