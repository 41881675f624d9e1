"""Secrets in text that leaves a tool: known key formats are replaced, ordinary text stays byte-identical (SAF-06)."""

import re

_MARK = "[redacted]"
_PEM = re.compile(
    r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[A-Za-z0-9+/=\s\\:,.\-]{1,20000}?(-----END [A-Z ]{0,40}PRIVATE KEY-----)"
)
# Formats with a fixed prefix and a length: a hit is a key, not prose about keys.
_TOKENS = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
    sk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_-]{20,200}        # OpenAI, Anthropic, OpenRouter
    |gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{50,255}
    |glpat-[A-Za-z0-9_-]{20,64}
    |(?:AKIA|ASIA)[A-Z0-9]{16}
    |AIza[A-Za-z0-9_-]{35}
    |xox[abprs]-[A-Za-z0-9-]{10,200}
    |hf_[A-Za-z0-9]{30,100}|gsk_[A-Za-z0-9]{40,100}
    |npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,255}
    |(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,120}
    |eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}
    )(?![A-Za-z0-9])""",
    re.VERBOSE,
)
_BEARER = re.compile(
    r"(?i)(\bauthorization\b[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|basic|token)\s{1,4})[A-Za-z0-9._~+/=-]{12,4000}"
)
_USERINFO = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"]{0,100}:)[^\s/@'\"$<{]{3,200}(@)")
_ASSIGNED = re.compile(
    r"""(\b[A-Z][A-Z0-9_]{0,60}(?:API_KEY|SECRET_KEY|SECRET_ACCESS_KEY|ACCESS_TOKEN|AUTH_TOKEN|PASSWORD|CLIENT_SECRET)=["']?)
    (?=[^\s"'$<{(]{8})(?=[^\s"']*[0-9])[^\s"']{8,400}""",
    re.VERBOSE,
)


def redact(text: str) -> str:
    """``text`` with every recognised secret replaced by ``[redacted]``.

    Recognised: provider and forge tokens by prefix and length, JSON web tokens, private key blocks, passwords in URLs,
    ``Authorization`` headers, and ``…API_KEY=value`` assignments as ``env`` prints them. Every pattern is bounded, so the
    time is linear in the length of the text. It is a last line: a secret of unknown form passes.
    """
    text = _PEM.sub(rf"\1{_MARK}\2", text)
    text = _TOKENS.sub(_MARK, text)
    text = _BEARER.sub(rf"\1{_MARK}", text)
    text = _USERINFO.sub(rf"\1{_MARK}\2", text)
    return _ASSIGNED.sub(rf"\1{_MARK}", text)
