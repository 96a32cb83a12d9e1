"""Text documents out of files: one file for each format, ``documents`` chooses among them, ``sources`` says what the user named."""
