"""Which language server serves which files, as data; a new language is one more row (SYM-03, SYM-04, SYM-11, Catalogue L)."""

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from ...core.model import JsonObject

Body = Literal[
    "python", "brace", ""
]  # how a body is delimited; "": neither, only whole definitions are replaced

_WAIT_S = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class ServerSpec:
    """One language. ``commands`` are tried in order on the environment's PATH; ``bundled`` ones stand beside our Python.

    ``ids`` names the protocol's language id of suffixes that differ from ``language``; ``init`` are the initialization
    options, ``settings`` what the server is told when it asks for a section; files below an ``ignored`` folder are not the
    project's; ``wait_s`` is how long a question waits for a server that is still reading the project.
    """

    language: str
    suffixes: frozenset[str]
    commands: tuple[tuple[str, ...], ...]
    install: str
    bundled: tuple[tuple[str, ...], ...] = ()
    ids: dict[str, str] = field(default_factory=dict[str, str])
    init: JsonObject = field(default_factory=dict[str, object])
    settings: JsonObject = field(default_factory=dict[str, object])
    ignored: frozenset[str] = frozenset()
    wait_s: float = _WAIT_S
    body: Body = ""
    late: bool = False  # it may say "no symbols" right after a file was opened, and know them a moment later
    experimental: bool = False  # only served when asked for by name (SYM-11)

    @property
    def programs(self) -> str:
        """The commands that would do, for a message."""
        return " or ".join(dict.fromkeys(command[0] for command in (*self.commands, *self.bundled)))

    @property
    def slow(self) -> bool:
        """Whether it reads the whole project first, and tells so only some time after its start."""
        return self.wait_s > _WAIT_S

    def language_id(self, path: str) -> str:
        """What the protocol calls the language of a file."""
        return self.ids.get(_suffix(path), self.language)


def _row(
    language: str, suffixes: str, commands: str | tuple[str, ...], install: str, **more: object
) -> ServerSpec:
    """``suffixes`` without dots, between blanks; ``commands`` between bars, or the words of a single one."""
    listed = (
        tuple(tuple(command.split()) for command in commands.split("|"))
        if isinstance(commands, str)
        else (commands,)
    )
    ignored = frozenset(str(more.pop("ignored", "")).split())
    dotted = frozenset(f".{one}" for one in suffixes.split())
    return ServerSpec(language, dotted, listed, install, ignored=ignored, **more)  # pyright: ignore[reportArgumentType]


_ANALYSIS: JsonObject = {
    "diagnosticMode": "openFilesOnly",
    "typeCheckingMode": "off",
    # what is wrong whatever the environment: an import that is merely not installed here is no error of an edit
    "diagnosticSeverityOverrides": {"reportUndefinedVariable": "error"},
    "autoSearchPaths": True,
    "useLibraryCodeForTypes": False,
    "indexing": False,
    "exclude": ["**/node_modules", "**/__pycache__", "**/.*"],
}
_PYTHON: JsonObject = {
    "python": {"analysis": _ANALYSIS},
    "python.analysis": _ANALYSIS,
    "basedpyright": {"analysis": _ANALYSIS, "disableOrganizeImports": True},
    "basedpyright.analysis": _ANALYSIS,
}
_SCRIPT = {
    ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
    ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact",
}  # fmt: skip
_C = {
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
}
_JULIA = ("julia", "--startup-file=no", "--history-file=no", "-e", "using LanguageServer; runserver()")

SERVERS: tuple[ServerSpec, ...] = (
    _row("python", "py pyi", "pyright-langserver --stdio", "pip install basedpyright", settings=_PYTHON, init=_PYTHON,
         bundled=(("basedpyright-langserver", "--stdio"),), body="python"),
    _row("typescript", "ts tsx mts cts js jsx mjs cjs", "typescript-language-server --stdio",
         "npm install -g typescript@5 typescript-language-server", ids=_SCRIPT, body="brace", ignored="dist build coverage",
         init={"hostInfo": "opendev", "disableAutomaticTypingAcquisition": True}),
    _row("rust", "rs", "rust-analyzer", "rustup component add rust-analyzer", body="brace", ignored="target", wait_s=20.0),
    _row("go", "go", "gopls", "go install golang.org/x/tools/gopls@latest", body="brace", ignored="vendor", wait_s=10.0),
    _row("java", "java", "jdtls", "install Eclipse JDT LS and put `jdtls` on PATH", body="brace", ignored="target build bin",
         wait_s=20.0),
    _row("cpp", "c h cc cpp cxx hh hpp hxx", "clangd --background-index", "apt install clangd", ids=_C, body="brace",
         ignored="build", wait_s=10.0),
    _row("csharp", "cs", "csharp-ls", "dotnet tool install --global csharp-ls", body="brace", ignored="bin obj", wait_s=20.0),
    _row("ruby", "rb rake gemspec", "ruby-lsp", "gem install ruby-lsp", ignored="vendor"),
    _row("php", "php phtml", "intelephense --stdio", "npm install -g intelephense", body="brace", ignored="vendor", wait_s=10.0),
    _row("swift", "swift", "sourcekit-lsp", "install the Swift toolchain", body="brace"),
    _row("kotlin", "kt kts", "kotlin-language-server|kotlin-lsp --stdio", "install kotlin-language-server", body="brace",
         ignored="build", wait_s=20.0),
    _row("lua", "lua", "lua-language-server", "install lua-language-server"),
    _row("elixir", "ex exs", "elixir-ls|language_server.sh", "install ElixirLS", ignored="_build deps", wait_s=10.0),
    _row("haskell", "hs lhs", "haskell-language-server-wrapper --lsp|haskell-language-server --lsp", "ghcup install hls",
         ignored="dist-newstyle", wait_s=20.0),
    _row("scala", "scala sbt sc", "metals", "cs install metals", body="brace", ignored="target", wait_s=20.0),
    _row("julia", "jl", _JULIA, "julia -e 'using Pkg; Pkg.add(\"LanguageServer\")'", wait_s=20.0),
    _row("perl", "pl pm t", "perl -MPerl::LanguageServer -e Perl::LanguageServer::run", "cpan Perl::LanguageServer",
         body="brace"),
    _row("clojure", "clj cljs cljc edn", "clojure-lsp", "install clojure-lsp", wait_s=10.0),
    _row("elm", "elm", "elm-language-server --stdio", "npm install -g @elm-tooling/elm-language-server",
         ignored="elm-stuff"),
    _row("terraform", "tf tfvars", "terraform-ls serve", "install terraform-ls", body="brace", ids={".tfvars": "terraform-vars"}),
    _row("shellscript", "sh bash", "bash-language-server start", "npm install -g bash-language-server", body="brace", late=True),
    _row("nix", "nix", "nixd", "nix profile install nixpkgs#nixd"),
    _row("erlang", "erl hrl escript", "erlang_ls --transport stdio", "install erlang_ls", ignored="_build", wait_s=10.0),
    _row("al", "al", "al-language-server", "install the AL Language extension's server as `al-language-server`"),
    _row("rego", "rego", "regal language-server", "install Regal", body="brace"),
    _row("fortran", "f f77 f90 f95 f03 f08 for", "fortls", "pip install fortls"),
    _row("ocaml", "ml mli", "ocamllsp", "opam install ocaml-lsp-server", ignored="_build", ids={".mli": "ocaml.interface"}),
    _row("markdown", "md markdown", "marksman server", "install marksman", experimental=True),
    _row("yaml", "yaml yml", "yaml-language-server --stdio", "npm install -g yaml-language-server", experimental=True),
    _row("dart", "dart", "dart language-server --protocol=lsp", "install the Dart SDK", body="brace", ignored="build",
         wait_s=10.0),
    _row("zig", "zig", "zls", "install zls", body="brace", ignored="zig-cache zig-out"),
    _row("r", "r", "R --slave -e languageserver::run()", "R -e 'install.packages(\"languageserver\")'", body="brace"),
)  # fmt: skip
_BY_SUFFIX = {suffix: one for one in SERVERS for suffix in one.suffixes}
SUFFIXES = frozenset(_BY_SUFFIX)


def server_for(path: str, *, named: bool = True) -> ServerSpec | None:
    """The server of a file, by its extension; an experimental one only when the file was asked for by ``name``."""
    spec = _BY_SUFFIX.get(_suffix(path))
    if (
        spec is None
        or (spec.experimental and not named)
        or spec.ignored & set(PurePosixPath(path).parts[:-1])
    ):
        return None
    return spec


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()
