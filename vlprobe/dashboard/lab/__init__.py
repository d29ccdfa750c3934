"""The pages below Lab."""
