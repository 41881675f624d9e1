"""OAuth for MCP servers with an address, by the official SDK: the saved login is used and renewed; only a person begins one (X12)."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import JsonObject
from .config import McpServer
from .logins import Login, LoginStore

_NOWHERE = "http://127.0.0.1/callback"  # never used: without a person no login gets so far
_UNAUTHORIZED, _FORBIDDEN = 401, 403
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")  # RFC 6749


def authorizer(server: McpServer, login: Login | None, deny: Callable[[OpenDevError], None]) -> Any:
    """The HTTP client's ``auth`` for ``server``; None when its headers say already who we are.

    Without ``login`` nobody can be asked: what only a new login would mend is an ``OpenDevError`` (denied) at once, which
    ``deny`` is told of as well, because the SDK puts others in its place.
    """
    import httpx2

    if not server.home or any(name.casefold() == "authorization" for name in server.headers):
        return None
    flow = _Flow(server, login, deny)

    class Authorizer(httpx2.Auth):
        """The flow, as the HTTP client wants it."""

        def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
            return flow.run(request)

    return Authorizer()


class _Flow:
    """The SDK's flow, watched: one renewal when a token is refused, and no new registration without a person."""

    def __init__(self, server: McpServer, login: Login | None, deny: Callable[[OpenDevError], None]) -> None:
        self._server, self._deny = server, deny
        self._store = LoginStore(Path(server.home), server.url)
        self._provider = _provider(server, self._store, login)
        self._program = server.oauth.grant == "client_credentials"  # logs in by itself
        self._nobody = login is None and not self._program
        self._wanted = str(self._store.load().get("wanted") or "") if login else ""
        if self._wanted:
            self._store.save(tokens=None)  # the old rights were too few: the server shall ask for a login

    async def run(self, request: Any) -> AsyncGenerator[Any, Any]:
        """One request of the transport with all that it takes, as ``httpx2.Auth.async_auth_flow``."""
        for again in (True, False):
            others = 0
            async with aclosing(self._provider.async_auth_flow(request)) as flow:
                outgoing = await anext(flow)
                while True:
                    response = yield outgoing
                    if outgoing is not request:
                        others += 1
                    elif (
                        response.status_code == _UNAUTHORIZED
                        and again
                        and not others
                        and await self._renewable(request)
                    ):
                        break
                    else:
                        await asyncio.to_thread(self._look, response)
                    try:
                        outgoing = await flow.asend(response)
                    except StopAsyncIteration:
                        return

    async def _renewable(self, request: Any) -> bool:
        """Whether another try can help: somebody else has renewed the token, or the SDK now will, by this one being over."""
        context = self._provider.context
        if context.current_tokens is None or self._program:
            return False
        sent = request.headers.get("authorization", "")
        if sent == f"Bearer {context.current_tokens.access_token}":
            context.current_tokens = await context.storage.get_tokens()
        if context.current_tokens is None:
            return False
        if sent != f"Bearer {context.current_tokens.access_token}":
            return True
        context.token_expiry_time = 1.0
        return context.can_refresh_token()

    def _look(self, response: Any) -> None:
        """What the server says to the request itself. Raises ``OpenDevError`` where only a person could help. Blocking."""
        status, wants = response.status_code, "a login"
        if status == _UNAUTHORIZED and self._wanted:
            response.headers["www-authenticate"] = f'Bearer scope="{self._wanted}"'
        if status not in (_UNAUTHORIZED, _FORBIDDEN) or not self._nobody:
            return
        if status == _FORBIDDEN:
            if not self._note_wanted(response):
                return
            wants = "a login with more rights"
        name = self._server.name
        error = OpenDevError(
            ErrorKind.DENIED,
            f"The MCP server {name} wants {wants}.",
            f"At a terminal: opendev mcp login {name}. Or put a token into `headers` of its entry.",
        )
        self._deny(error)
        raise error

    def _note_wanted(self, response: Any) -> bool:
        """Keep, for the next login, which rights a call would have needed; False when it was refused for something else."""
        from mcp.client.auth.utils import extract_field_from_www_auth as field

        if field(response, "error") != "insufficient_scope":
            return False
        tokens: JsonObject = self._store.load().get("tokens") or {}
        scopes = {*str(tokens.get("scope") or "").split(), *(field(response, "scope") or "").split()}
        self._store.save(wanted=" ".join(sorted(scope for scope in scopes if _SCOPE.fullmatch(scope))))
        return True


def _provider(server: McpServer, store: LoginStore, login: Login | None) -> Any:
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

    given = server.oauth
    storage = _Storage(server, store, login)
    if given.grant == "client_credentials":
        provider = ClientCredentialsOAuthProvider(
            server.url, storage, given.client_id, given.client_secret, issuer=given.issuer
        )
        storage.context = provider.context
        return provider

    async def wait() -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(await login.wait() if login else {})

    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "OpenDev", "redirect_uris": [login.redirect_uri if login else _NOWHERE]}
    )
    provider = OAuthClientProvider(
        server.url,
        metadata,
        storage,
        login.show if login else None,
        wait,
        client_metadata_url=given.client_metadata_url or None,
    )
    storage.context = provider.context
    return provider


class _Storage:
    """The SDK's ``TokenStorage``; it also keeps what the SDK forgets: when a token ends, and where it is renewed."""

    def __init__(self, server: McpServer, store: LoginStore, login: Login | None) -> None:
        self._server, self._store, self._login = server, store, login
        self.context: Any = None

    async def get_tokens(self) -> Any:
        """The saved tokens, or None."""
        from mcp.shared.auth import OAuthMetadata, OAuthToken, ProtectedResourceMetadata

        saved = await asyncio.to_thread(self._store.load)
        context = self.context
        try:
            tokens = OAuthToken.model_validate(saved["tokens"])
            context.token_expiry_time = saved.get("expires_at")
            if saved.get("metadata"):
                context.oauth_metadata = OAuthMetadata.model_validate(saved["metadata"])
            if saved.get("resource"):
                context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
                    saved["resource"]
                )
        except (KeyError, ValueError):
            return None
        return tokens

    async def set_tokens(self, tokens: Any) -> None:
        """Save what a login or a renewal gave."""
        context = self.context
        await asyncio.to_thread(
            self._store.save,
            server=self._server.name,
            tokens=_plain(tokens),
            expires_at=context.token_expiry_time,
            metadata=_plain(context.oauth_metadata),
            resource=_plain(context.protected_resource_metadata),
            wanted="",
        )

    async def get_client_info(self) -> Any:
        """Who we are to the server: by the entry, or as we were registered, if the browser can still come back there."""
        from mcp.shared.auth import OAuthClientInformationFull as Client

        given = self._server.oauth
        if given.client_id:
            return Client(
                client_id=given.client_id,
                client_secret=given.client_secret or None,
                token_endpoint_auth_method="client_secret_basic" if given.client_secret else "none",
                issuer=given.issuer or None,
            )
        saved = (await asyncio.to_thread(self._store.load)).get("client")
        try:
            known = Client.model_validate(saved)
        except ValueError:
            return None
        uris = [str(uri) for uri in known.redirect_uris or ()]
        return known if self._login is None or self._login.redirect_uri in uris else None

    async def set_client_info(self, client_info: Any) -> None:
        """Save a registration."""
        await asyncio.to_thread(self._store.save, server=self._server.name, client=_plain(client_info))


def _plain(model: Any) -> JsonObject | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
