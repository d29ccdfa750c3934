"""Static sites: question sets as a folder of web pages that open from a file or any web server, without Python."""
