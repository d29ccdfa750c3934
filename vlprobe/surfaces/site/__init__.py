"""Question sets as a folder of web pages. They open from a file or any web server, without Python."""
