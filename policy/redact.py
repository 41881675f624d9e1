"""Secrets in text that leaves a tool: known key formats are replaced, ordinary text stays byte-identical (SAF-06)."""

import json
import re
from typing import Any, cast

_MARK = "[redacted]"
_PEM = re.compile(
    r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)(?:[^-]{1,20000}?|[^-]{1,2000}-[^-]{1,20000}?)"
    r"(-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
)
# A window of a file can end inside of a key: then the lines of base64 after its head go, line numbers or not.
_PEM_OPEN = re.compile(
    r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)(?:(?:\s|\\n|\d{1,6}\t){1,20}[A-Za-z0-9+/=]{16,100}){1,400}"
)
# Formats with a fixed prefix and a length: a hit is a key, not prose about keys.
_TOKENS = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
    sk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_-]{20,200}        # OpenAI, Anthropic, OpenRouter
    |gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{50,255}
    |gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,64}
    |(?:AKIA|ASIA)[A-Z0-9]{16}
    |AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,500}|GOCSPX-[A-Za-z0-9_-]{28}
    |xox[abeprs]-[A-Za-z0-9-]{10,200}|xapp-\d-[A-Za-z0-9-]{20,200}
    |hf_[A-Za-z0-9]{30,100}|gsk_[A-Za-z0-9]{40,100}|xai-[A-Za-z0-9]{40,120}|pplx-[A-Za-z0-9]{40,100}|r8_[A-Za-z0-9]{37}
    |npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,255}|rubygems_[a-f0-9]{48}
    |(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,120}|whsec_[A-Za-z0-9+/]{24,64}
    |SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}
    |do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|hv[sbr]\.[A-Za-z0-9_-]{24,200}|sbp_[a-f0-9]{40}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}
    |lin_api_[A-Za-z0-9]{40}|ATATT3[A-Za-z0-9_=-]{50,250}|NRAK-[A-Z0-9]{27}|sntry[su]_[A-Za-z0-9+/=_]{40,300}
    |AGE-SECRET-KEY-1[A-Z0-9]{50,70}|\d{8,10}:AA[A-Za-z0-9_-]{33}
    |eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}
    )(?![A-Za-z0-9])""",
    re.VERBOSE,
)
_SMALL = "\u0130\u0131\u017f\u212a"  # match `i`, `s` and `k` where case does not count, and are not these in small letters
# A value between a frame that stays. Before each the words of which one stands in every text it can match, in small letters: to look
# for them takes a hundredth of the time.
_FRAMES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (
        ("authorization",),
        re.compile(
            r"(?i)(\b(?:proxy-)?authorization\b[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|basic|token)\s{1,4})[A-Za-z0-9._~+/=-]{12,4000}()"
        ),
    ),
    (
        ("-key", "-token"),
        re.compile(
            r"(?i)(\b(?:x-)?(?:api|auth|access)-(?:key|token)\b[\"']?\s{0,4}[:=]\s{0,4}[\"']?)(?=[^\s\"']{0,99}\d)[\w.~+/=-]{16,400}()"
        ),
    ),
    (("://",), re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"]{0,100}:)[^\s/@'\"$<{]{3,200}(@)")),
    (  # a token in place of the user
        ("://",),
        re.compile(r"(\bhttps?://)(?=[^\s/:@]{0,99}\d)[A-Za-z0-9_-]{24,200}(@[\w.-]{1,100})"),
    ),
    (
        ("hooks.slack.com",),
        re.compile(r"(\bhttps://hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_-]{20,200}()"),
    ),
    (  # .netrc
        ("machine",),
        re.compile(
            r"(\bmachine\s{1,4}\S{1,200}\s{1,9}login\s{1,4}\S{1,200}\s{1,9}password\s{1,4})\S{3,400}()"
        ),
    ),
    (
        ("aws_",),
        re.compile(
            r"(?i)(\baws_(?:secret_access_key|session_token)[\"']?\s{0,4}[:=]\s{0,4}[\"']?)[A-Za-z0-9/+=]{16,2000}()"
        ),
    ),
    (  # Azure connection strings
        ("accountkey=", "sharedaccesskey="),
        re.compile(r"(\b(?:AccountKey|SharedAccessKey)=)[A-Za-z0-9+/=]{20,200}()"),
    ),
    (  # .npmrc
        ("_authtoken=", "_auth=", "_password="),
        re.compile(r"(_authToken=|_auth=|_password=)(?=[^\s$]{0,199}\d)[^\s$\"']{8,400}()"),
    ),
    (
        ("-password", "-passwd", "-token", "-api", "-secret"),
        re.compile(
            r"(\s--?(?:password|passwd|token|api-?key|secret)[= ]['\"]?)(?=[^\s\"']{0,199}\d)[^\s'\"$<{(-][^\s'\"$<{(]{7,200}()"
        ),
    ),
    (
        ("key=", "token=", "password=", "passwd=", "passphrase=", "secret=", "_pat=", "_pwd="),
        re.compile(
            r"""(\b[A-Z][A-Z0-9_]{0,60}(?:API_?KEY|SECRET_KEY|ACCESS_KEY|PRIVATE_KEY|ENCRYPTION_KEY|TOKEN|PASSWORD|PASSWD|PASSPHRASE
            |SECRET|_PAT|_PWD)=["']?)(?=[^\s"'$<{(]{8})(?=[^\s"']{0,399}[0-9])[^\s"']{8,400}()""",
            re.VERBOSE,
        ),
    ),
)


def redact(text: str, known: tuple[str, ...] = ()) -> str:
    """``text`` with every recognised secret replaced by ``[redacted]``.

    Recognised: provider and forge tokens by prefix and length, JSON web tokens, private key blocks (cut ones too), passwords
    in URLs and ``.netrc``, headers that authorise, ``…API_KEY=value`` assignments as ``env`` prints them, and the values in
    ``known`` (``secrets.values_in``). Every pattern is bounded, so the time is linear in the length of the text. It is a last
    line: a secret of unknown form passes.
    """
    for value in known:
        text = text.replace(value, _MARK)
    if "-----BEGIN " in text:
        text = _PEM_OPEN.sub(rf"\1{_MARK}", _PEM.sub(rf"\1{_MARK}\2", text))
    text = _TOKENS.sub(_MARK, text)
    small = text.lower()
    strange = not text.isascii() and any(letter in text for letter in _SMALL)
    for words, frame in _FRAMES:
        if strange or any(word in small for word in words):
            text = frame.sub(rf"\1{_MARK}\2", text)
    return text


def redact_values(value: Any) -> Any:
    """The same for every text in JSON data; a replacement text by text cannot break what is around it."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_values(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [redact_values(item) for item in cast("list[Any]", value)]
    return value


def redact_line(line: str) -> str:
    """The same for one line of a log, which is JSON; a line without secrets stays byte-identical."""
    if redact(line) == line:
        return line
    return json.dumps(redact_values(json.loads(line)), ensure_ascii=False, separators=(",", ":"))
