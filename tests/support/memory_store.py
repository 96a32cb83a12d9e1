"""``memory://``: the object store that fsspec keeps in the memory of a process, emptied for each
test.
"""

import fsspec


def empty():
    """The store, with nothing in it."""
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    return store


def upload(store, folder, name):
    """A copy of all files below a folder; its URL."""
    for path in folder.rglob("*"):
        if path.is_file():
            store.pipe_file(f"/{name}/{path.relative_to(folder)}", path.read_bytes())
    return f"memory://{name}"


def contents(store, name):
    """Of all objects below a folder, by their names in it."""
    return {path.removeprefix(f"/{name}/"): store.cat_file(path) for path in store.find(f"/{name}")}
