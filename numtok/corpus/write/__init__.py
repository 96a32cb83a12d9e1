"""Writers of encoded files: ``sinks`` has the table of output formats, ``encoded`` the files that
appear when they are whole, and standard output.
"""
