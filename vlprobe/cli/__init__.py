"""Command-line interface, with one command per public function."""
