"""Variants of the public failures of group 1, by kind: what the file must hold afterwards, byte for byte (E01..E37)."""

from pathlib import Path

import pytest
from opendev.tools.edit_file import TOOL, Args
from support.tool_context import make_context

# Name, content, old, new, and what the file holds afterwards: exactly that, one of several (unchanged only when refused), or None:
# refused, the file untouched.
CASES: list[tuple[str, bytes, str, str, bytes | tuple[bytes, ...] | None]] = [
    ('tabs->spaces py file', b'if a:\n    x = 1\n', 'if a:\n\tx = 1', 'if a:\n\tx = 2', b'if a:\n    x = 2\n'),
    ('tabs nested', b'a {\n\tb {\n\t\tc\n\t}\n}\n', '  b {\n    c\n  }', '  b {\n    d\n    e\n  }', b'a {\n\tb {\n\t\td\n\t\te\n\t}\n}\n'),
    ('line-number prefix', b'x = 1\ny = 2\n', '     1\tx = 1\n     2\ty = 2', '     1\tx = 1\n     2\ty = 3', b'x = 1\ny = 3\n'),
    ('line-number prefix arrow', b'x = 1\ny = 2\n', '1\u2192x = 1\n2\u2192y = 2', 'x = 1\ny = 3', b'x = 1\ny = 3\n'),
    ('makefile tabs', b'all:\n\tcc a.c\n', 'all:\n        cc a.c', 'all:\n        cc b.c', b'all:\n\tcc b.c\n'),
    ('crlf new has LF', b'a\r\nb\r\nc\r\n', 'b', 'x\ny', b'a\r\nx\r\ny\r\nc\r\n'),
    ('crlf old has crlf, file LF', b'a\nb\nc\n', 'a\r\nb', 'a\r\nx', b'a\nx\nc\n'),
    ('bare CR (mac)', b'a\rb\rc\r', 'b', 'x\ny', b'a\rx\ry\rc\r'),
    ('mixed ends', b'a\r\nb\nc\r\n', 'b', 'x\ny', b'a\r\nx\ny\nc\r\n'),
    ('CR inside LF file kept', b'a\rb\nc\n', 'c', 'd', b'a\rb\nd\n'),
    ('no final newline add line', b'a\nb', 'b', 'b\nc', b'a\nb\nc'),
    ('no final nl, old with nl', b'a\nb', 'b\n', 'c\n', (b'a\nb', b'a\nc', b'a\nc\n')),
    ('final newline kept when whole replaced', b'a\n', 'a', 'b', b'b\n'),
    ('trailing blank lines', b'a\n\n\n', 'a', 'b', b'b\n\n\n'),
    ('BOM utf8', b'\xef\xbb\xbfx=1\n', 'x=1', 'x=2', b'\xef\xbb\xbfx=2\n'),
    ('BOM in old', b'\xef\xbb\xbfx=1\n', '\ufeffx=1', '\ufeffx=2', b'\xef\xbb\xbfx=2\n'),
    ('latin1 same line', b'caf\xe9 x=1\n', 'x=1', 'x=2', b'caf\xe9 x=2\n'),
    ('gbk', b'\xd6\xd0\xce\xc4 a=1\n', 'a=1', 'a=2', b'\xd6\xd0\xce\xc4 a=2\n'),
    ('utf16le', b'\xff\xfex\x00=\x001\x00\r\x00\n\x00', 'x=1', 'x=2', b'\xff\xfex\x00=\x002\x00\r\x00\n\x00'),
    ('utf16be', b'\xfe\xff\x00x\x00=\x001\x00\n', 'x=1', 'x=\xe9', b'\xfe\xff\x00x\x00=\x00\xe9\x00\n'),
    ('utf16 no bom', b'x\x00=\x001\x00\n\x00', 'x=1', 'x=2', None),
    ('utf32', b'\xff\xfe\x00\x00x\x00\x00\x00=\x00\x00\x001\x00\x00\x00\n\x00\x00\x00', 'x=1', 'x=2', None),
    ('utf16 newline', b'\xff\xfea\x00\r\x00\n\x00b\x00\r\x00\n\x00', 'a\nb', 'a\nc\nb', b'\xff\xfea\x00\r\x00\n\x00c\x00\r\x00\n\x00b\x00\r\x00\n\x00'),
    ('curly in file, straight old', b's = \xe2\x80\x9chi\xe2\x80\x9d\n', 's = "hi"', 's = "ho"', (b's = "ho"\n', b's = \xe2\x80\x9chi\xe2\x80\x9d\n', b's = \xe2\x80\x9cho\xe2\x80\x9d\n')),
    ('straight->dash', b'a - b\n', 'a - b', 'a \u2013 b', b'a \xe2\x80\x93 b\n'),
    ('nbsp in file', b'a\xc2\xa0b\n', 'a b', 'a c', (b'a c\n', b'a\xc2\xa0b\n', b'a\xc2\xa0c\n')),
    ('nfc vs nfd', b'cafe\xcc\x81 = 1\n', 'caf\xe9 = 1', 'caf\xe9 = 2', (b'cafe\xcc\x81 = 1\n', b'cafe\xcc\x81 = 2\n', b'caf\xc3\xa9 = 2\n')),
    ('backrefs', b'a("x")\n', 'a("x")', '\\1 \\g<0> \\\\ $0 ${1}', b'\\1 \\g<0> \\\\ $0 ${1}\n'),
    ('backrefs via fuzzy', b'\ta("x")\n', '    a("x")', '    \\1 $& \\n', b'\t\\1 $& \\n\n'),
    ('regex meta in old', b'a.*b\naXb\n', 'a.*b', 'c', b'c\naXb\n'),
    ('percent', b'p\n', 'p', '%s %d {x} %%', b'%s %d {x} %%\n'),
    ('unescape \\t', b'pass\n', 'pass', 're.compile("\\t\\\\d")', b're.compile("\\t\\\\d")\n'),
    ('old escaped by model', b'print("a\\nb")\n', 'print(\\"a\\\\nb\\")', 'print(\\"c\\")', (b'print("a\\nb")\n', b'print("c")\n')),
    ('old with literal \\n for newline', b'a\nb\n', 'a\\nb', 'a\\nc', (b'a\nb\n', b'a\nc\n')),
    ('html entities', b'a < b\n', 'a &lt; b', 'a &lt; c', None),
    ('two places indented', b'if a:\n    x()\nif b:\n    x()\n', 'x()', 'y()', None),
    ('two places differing in ws only', b'  x = 1\n    x = 1\n', 'x = 1', 'x = 2', None),
    ('fuzzy two places', b'\tx = 1\n\n\tx = 1\n', '    x = 1', '    x = 2', None),
    ('substring dup foo foobar', b'foo = 1\nfoobar = foo\n', 'foo', 'bar', None),
    ('anchor ends only', b'function q() {\n  const c = open()\n  use(c)\n}\n', 'function q() {\n  return 1\n}', 'function q() {}', None),
    ('half alike', b'def f(a):\n    x = 1\n    y = 2\n    return x + y\n', 'def f(a):\n    x = 1\n    z = 3\n    return x + z', 'def f(a):\n    return 0', None),
    ('one char typo in middle', b'alpha()\nbeta()\ngamma()\n', 'alpha()\nbata()\ngamma()', 'x()', None),
    ('extra line in needle', b'a()\nb()\n', 'a()\nq()\nb()', 'c()', None),
    ('missing line in needle', b'a()\nq()\nb()\n', 'a()\nb()', 'c()', None),
    ('elided rewrite', b'a()\nb()\nc()\nd()\n', 'a()\n...\nd()', 'a()\nd()', None),
    ('elided comment', b'def f():\n    a()\n    b()\n    c()\n', 'def f():\n    # ... existing code ...\n    c()', 'def f():\n    c()', None),
    ('elided new', b'def f():\n    a()\n    b()\n', 'def f():\n    a()\n    b()', 'def f():\n    # ... existing code ...\n    c()', (b'def f():\n    # ... existing code ...\n    c()\n', b'def f():\n    a()\n    b()\n')),
    ('case differs', b'Hello\n', 'hello', 'bye', None),
    ('punctuation differs', b'a, b\n', 'a b', 'c', None),
    ('comment only differs', b'x = 1  # one\n', 'x = 1  # two', 'x = 2', None),
    ('old whitespace only', b'a\n\n\nb\n', '\n\n\n', '\n', (b'a\n\n\nb\n', b'a\nb\n')),
    ('old spaces only', b'a  b\n', '  ', ' ', b'a b\n'),
    ('empty new deletes line', b'a\nb\nc\n', 'b\n', '', b'a\nc\n'),
    ('delete all', b'a\n', 'a\n', '', b''),
    ('same', b'a\n', 'a', 'a', None),
    ('trailing ws in file', b'x = 1   \ny\n', 'x = 1\ny', 'x = 2\ny', (b'x = 2\ny\n', b'x = 2   \ny\n')),
    ('trailing ws in needle', b'x = 1\ny\n', 'x = 1   \ny', 'x = 2\ny', b'x = 2\ny\n'),
    ('leading newline in needle', b'a\nb\nc\n', '\nb\n', '\nx\n', b'a\nx\nc\n'),
    ('needle extra blank around', b'a\nb\nc\n', '\n\nb\n\n', '\n\nx\n\n', (b'a\n\nx\n\nc\n', b'a\nb\nc\n', b'a\nx\nc\n')),
    ('indent shift python', b'class A:\n    def f(self):\n        return 1\n', 'def f(self):\n    return 1', 'def f(self):\n    x = 2\n    return x', b'class A:\n    def f(self):\n        x = 2\n        return x\n'),
    ('form feed', b'a\x0cb\nc\n', 'c', 'd', b'a\x0cb\nd\n'),
    ('vertical tab/NEL/LS', b'a\x0bb\xe2\x80\xa8c\xc2\x85d\nx\n', 'x', 'y', b'a\x0bb\xe2\x80\xa8c\xc2\x85d\ny\n'),
    ('emoji', b"s = '\xf0\x9f\x98\x80\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd'\nx\n", 'x', 'y', b"s = '\xf0\x9f\x98\x80\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd'\ny\n"),
    ('astral in old', b"'\xf0\x9f\x98\x80'\n", "'\U0001f600'", "'\U0001f389'", b"'\xf0\x9f\x8e\x89'\n"),
    ('NUL', b'a\x00b\nx\n', 'x', 'y', None),
    ("very long line", b"x" * 100_000 + b"Q\n", "Q", "R", b"x" * 100_000 + b"R\n"),
    ('zero-width', b'a\xe2\x80\x8bb\n', 'ab', 'c', None),
]  # fmt: skip


@pytest.mark.req("FIL-06", "FIL-08")
@pytest.mark.parametrize(
    ("content", "old", "new", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_a_variant(
    tmp_path: Path, content: bytes, old: str, new: str, wanted: bytes | tuple[bytes, ...] | None
) -> None:
    file = tmp_path / "f.py"
    file.write_bytes(content)
    before = file.stat()
    result = await TOOL.run(Args(file_path="f.py", old_content=old, new_content=new), make_context(tmp_path))
    found = file.read_bytes()
    if not result.ok:
        assert wanted is None or isinstance(wanted, tuple), result.text
        assert (found, file.stat().st_mtime_ns, file.stat().st_ino) == (
            content,
            before.st_mtime_ns,
            before.st_ino,
        )
    elif isinstance(wanted, tuple):
        assert found in wanted
        assert found != content
    else:
        assert found == wanted
