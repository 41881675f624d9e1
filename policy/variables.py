"""Environment variables that make programs run other code, or take it from other places (S08)."""

import re

from .words import Word

# Their values are command lines.
RUN_BY_PROGRAMS = re.compile(
    r"\w*PAGER|(?:\w*_)?EDITOR|VISUAL|BROWSER|PROMPT_COMMAND|PS[0-4]|\w*_ASKPASS|GIT_(?:SSH|SSH_COMMAND|EXTERNAL_DIFF|PROXY_COMMAND)"
    r"|LESS(?:OPEN|CLOSE)|RSYNC_RSH|TAR_OPTIONS|MAKEFLAGS|RUSTC_(?:WORKSPACE_)?WRAPPER|FCEDIT"
)
_LOADERS = re.compile(
    r"LD_\w+|DYLD_\w+|GCONV_PATH|BASH_(?:ENV|FUNC)\w*|PYTHON(?:STARTUP|HOME|INSPECT|BREAKPOINT)|PERL5(?:OPT|DB)|RUBYOPT|_?JAVA_(?:TOOL_)?OPTIONS"
    r"|JDK_JAVA_OPTIONS|SHELL|SHELLOPTS|BASHOPTS|HOME|XDG_CONFIG_HOME|CDPATH|HOSTALIASES|RIPGREP_CONFIG_PATH|GREP_OPTIONS|HGRCPATH|OPENSSL_CONF"
    r"|CARGO_BUILD_\w*WRAPPER|(?i:npm_config_(?:script_shell|node_options|prefix|globalconfig|userconfig))|OPENDEV_\w+|GIT_\w+"
)
_GIT_HARMLESS = re.compile(
    r"GIT_(?:TERMINAL_PROMPT|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|OPTIONAL_LOCKS|TRACE\w*|LFS_SKIP_SMUDGE|MERGE_AUTOEDIT)"
)
_NO_PROGRAM = re.compile(
    r"(?:/usr)?(?:/bin/)?(?:cat|true|:|less|more|echo|vi|vim|nano|none|sccache)?(?: -\w+)*"
)
_NODE_HARMLESS = re.compile(
    r"(?:--(?:max-old-space-size|no-warnings|trace-\w+|enable-source-maps|experimental-[\w-]+|unhandled-rejections|no-deprecation)(?:=[\w-]+)?\s*)*"
)
_PLACES = re.compile(
    r"(?:(?!/tmp|/var/tmp|/dev)(?:/[\w.+~ -]+)+/(?:s?bin|scripts)|\$\{?PATH\}?|/home/~(?:/[\w.+-]+)+|(?:/[\w.+-]+)+/\.bin)"
)


def leads_astray(name: str, value: Word) -> str:
    """Why setting this variable is confirmed; empty when it is not."""
    if RUN_BY_PROGRAMS.fullmatch(name):
        return (
            ""
            if value.static and _NO_PROGRAM.fullmatch(value.text)
            else f"{name} names a program that others run"
        )
    if name == "PATH":
        entries = value.text.split(":")
        plain = any("PATH" in entry for entry in entries) and all(
            _PLACES.fullmatch(entry) for entry in entries
        )
        return "" if plain else "PATH leads programs to another place"
    if name == "NODE_OPTIONS":
        return (
            ""
            if value.static and _NODE_HARMLESS.fullmatch(value.text)
            else "NODE_OPTIONS makes programs run other code"
        )
    if _LOADERS.fullmatch(name) and not _GIT_HARMLESS.fullmatch(name):
        return f"{name} leads programs to another place or program"
    return ""
