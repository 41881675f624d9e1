"""OAuth for MCP servers with an address, by the official SDK: the saved login is used and renewed; only a person begins one (X12)."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from ...core.errors import ErrorKind, OpenDevError
from .config import McpServer
from .logins import Login, LoginStore

_NOWHERE = "http://127.0.0.1/callback"  # never used: without a person no login gets so far
_UNAUTHORIZED, _FORBIDDEN = 401, 403


def authorizer(server: McpServer, login: Login | None) -> Any:
    """The HTTP client's ``auth`` for ``server``; None when its headers say already who we are.

    Without ``login`` nobody can be asked: what only a new login would mend is an ``OpenDevError`` (denied) at once.
    """
    import httpx2

    if not server.home or any(name.casefold() == "authorization" for name in server.headers):
        return None
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs flows with all their addresses
    store = LoginStore(Path(server.home), server.url)
    provider = _provider(server, store, login)
    alone = server.oauth.grant == "client_credentials"

    class Authorizer(httpx2.Auth):
        """The SDK's flow, watched: one renewal when a token is refused, and no new registration without a person."""

        async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
            for again in (True, False):
                others = 0
                refused = False
                async with aclosing(provider.async_auth_flow(request)) as flow:
                    outgoing = await anext(flow)
                    while True:
                        response = yield outgoing
                        status = response.status_code if outgoing is request else 0
                        if status == _UNAUTHORIZED and again and not others and await _renewable(request):
                            refused = True
                            break
                        if status in (_UNAUTHORIZED, _FORBIDDEN) and login is None and not alone:
                            _give_up(server, status, response)
                        others += outgoing is not request
                        try:
                            outgoing = await flow.asend(response)
                        except StopAsyncIteration:
                            break
                if not refused:
                    return

    async def _renewable(request: Any) -> bool:
        """Whether another try can help: somebody else has renewed the token, or the SDK now will, by this one being over."""
        context = provider.context
        if context.current_tokens is None or alone:
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

    return Authorizer()


def _give_up(server: McpServer, status: int, response: Any) -> None:
    challenge = response.headers.get("www-authenticate", "")
    if status == _FORBIDDEN and "insufficient_scope" not in challenge:
        return
    wants = "a login" if status == _UNAUTHORIZED else "a login with more rights"
    raise OpenDevError(
        ErrorKind.DENIED,
        f"The MCP server {server.name} wants {wants}.",
        f"At a terminal: opendev mcp login {server.name}. Or put a token into `headers` of its entry.",
    )


def _provider(server: McpServer, store: LoginStore, login: Login | None) -> Any:
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

    given = server.oauth
    storage = _storage(server, store, login)
    if given.grant == "client_credentials":
        provider = ClientCredentialsOAuthProvider(
            server.url, storage, given.client_id, given.client_secret, issuer=given.issuer
        )
        storage.context = provider.context
        return provider

    async def show(url: str) -> None:
        if login is None:
            raise OpenDevError(ErrorKind.DENIED, f"The MCP server {server.name} wants a login.")
        await login.show(url)

    async def wait() -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(await login.wait() if login else {})

    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "OpenDev", "redirect_uris": [login.redirect_uri if login else _NOWHERE]}
    )
    provider = OAuthClientProvider(
        server.url, metadata, storage, show, wait, client_metadata_url=given.client_metadata_url or None
    )
    storage.context = provider.context
    return provider


def _storage(server: McpServer, store: LoginStore, login: Login | None) -> Any:
    from mcp.shared.auth import (
        OAuthClientInformationFull,
        OAuthMetadata,
        OAuthToken,
        ProtectedResourceMetadata,
    )

    class Storage:
        """The SDK's storage; it also keeps what the SDK forgets: when a token ends, and where it is renewed."""

        context: Any = None

        async def get_tokens(self) -> OAuthToken | None:
            saved = await asyncio.to_thread(store.load)
            try:
                tokens = OAuthToken.model_validate(saved["tokens"])
                self.context.token_expiry_time = saved.get("expires_at")
                if saved.get("metadata"):
                    self.context.oauth_metadata = OAuthMetadata.model_validate(saved["metadata"])
                if saved.get("resource"):
                    found = ProtectedResourceMetadata.model_validate(saved["resource"])
                    self.context.protected_resource_metadata = found
            except (KeyError, ValueError):
                return None
            return tokens

        async def set_tokens(self, tokens: OAuthToken) -> None:
            context = self.context
            await asyncio.to_thread(
                store.save,
                server=server.name,
                tokens=tokens.model_dump(mode="json"),
                expires_at=context.token_expiry_time,
                metadata=_plain(context.oauth_metadata),
                resource=_plain(context.protected_resource_metadata),
            )

        async def get_client_info(self) -> OAuthClientInformationFull | None:
            given = server.oauth
            if given.client_id:
                method = "client_secret_basic" if given.client_secret else "none"
                return OAuthClientInformationFull(
                    client_id=given.client_id,
                    client_secret=given.client_secret or None,
                    token_endpoint_auth_method=method,
                    issuer=given.issuer or None,
                )
            saved = (await asyncio.to_thread(store.load)).get("client")
            if not saved:
                return None
            try:
                known = OAuthClientInformationFull.model_validate(saved)
            except ValueError:
                return None
            uris = [str(uri) for uri in known.redirect_uris or ()]
            return known if login is None or login.redirect_uri in uris else None

        async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
            await asyncio.to_thread(store.save, server=server.name, client=_plain(client_info))

    return Storage()


def _plain(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
