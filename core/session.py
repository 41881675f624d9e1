"""A session: the record beside a transcript (formats of SES rows; the store reads and writes it)."""

from .chat import Usage
from .model import Persisted


class SessionMeta(Persisted):
    """Metadata of one session."""

    id: str
    project: str  # absolute path
    title: str = ""
    created_at: str
    updated_at: str
    parent_id: str = ""
    agent: str = ""
    model: str = ""
    usage: Usage = Usage()
    model_calls: int = 0
    status: str = ""
