"""The command line: one command a public function."""
