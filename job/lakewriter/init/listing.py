"""List local folders and prefixes of S3, without what Spark passes over."""

from lakewriter import aws
from lakewriter.errors import SourceFailedError
from lakewriter.source.storage import NotListable, find_store, is_hidden, is_remote
from lakewriter.source.task_sizes import SourceFile


def list_folder(path: str) -> tuple[list[SourceFile], list[str]]:
    """List the files and folders directly in ``path``, each in the order of names; a file is its own only content."""
    try:
        store, root = find_store(path)
        entries = store.list_path(root.rstrip("/") or root)
    except (aws.ClientError, aws.BotoCoreError) as error:
        raise SourceFailedError(
            f"{path} cannot be listed: {error}.", remedy="Check the bucket's name and this machine's AWS credentials."
        ) from error
    except NotListable:
        entries = None
    if entries is None and not is_remote(path):
        raise SourceFailedError(f"there is no file or folder {path!r}.", remedy="Give a path that exists.")
    if entries is not None and [entry.path for entry in entries] == [root]:
        return [SourceFile(path, entries[0].size)], []
    shown = [entry for entry in entries or () if not is_hidden(entry.name)]
    if not shown and is_remote(path):
        raise SourceFailedError(f"nothing lies under {path}.", remedy="Give a prefix that has objects.")
    # The path stays as it is given.
    bare = path.rstrip("/")
    files = [SourceFile(f"{bare}/{entry.name}", entry.size) for entry in shown if not entry.is_folder]
    return files, [f"{bare}/{entry.name}" for entry in shown if entry.is_folder]
