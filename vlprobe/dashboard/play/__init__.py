"""The page Play: *Spot the lie*, alone or in a room, and the Playground."""
