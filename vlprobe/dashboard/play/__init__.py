"""The Play page: *Spot the lie*, for one person or in a room, and the Playground."""
