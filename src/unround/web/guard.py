"""The guard at the door: which hosts and sites are answered, which methods, and what browsers may do with the answers."""

from __future__ import annotations

import ipaddress
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
ANY_ADDRESS = "*"
"""Stands for every address written in numbers. A page elsewhere can make its own name lead here, but never numbers."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'none'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def hosts_for(host: str) -> frozenset[str]:
    """Return the names to answer to when listening on an address.

    >>> sorted(hosts_for("127.0.0.1"))
    ['127.0.0.1', '::1', 'localhost']
    """
    import socket

    if host in ("0.0.0.0", "::", ""):
        return LOCAL | {socket.gethostname().lower(), ANY_ADDRESS}
    return LOCAL | {host.strip("[]").lower()}


_HOST = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,253}))(?::[0-9]{1,5})?")
"""A name or an address, and a port: nothing else is a host."""

OURSELVES = frozenset({"", "same-origin", "none"})
"""Where browsers say that a request comes from (`Sec-Fetch-Site`), if it is from us or from the person who types."""


class Guard:
    """Middleware that refuses requests meant for another host or sent by another site, and everything but reading.

    - `app`: What it guards.
    - `hosts`: Names and addresses, without ports; `ANY_ADDRESS` stands for all addresses in numbers.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                answered.update(HEADERS)
                answered.setdefault("Cache-Control", "no-cache")
            await send(message)

        headers = Headers(scope=scope)
        if not self._is_ours(headers.getlist("host")):
            refusal = PlainTextResponse("This explorer answers only to its own host name.\n", 421)
            await refusal(scope, receive, send_guarded)
        elif not self._by_ourselves(headers):
            text = "This explorer answers no other site. Type its address, or open it from a bookmark.\n"
            await PlainTextResponse(text, 403)(scope, receive, send_guarded)
        elif scope["method"] not in ("GET", "HEAD"):
            refusal = PlainTextResponse("This explorer can only be read.\n", 405, {"Allow": "GET, HEAD"})
            await refusal(scope, receive, send_guarded)
        else:
            await self.app(scope, receive, send_guarded)

    def _by_ourselves(self, headers: Headers) -> bool:
        """Whether no other site sent a request, by all that browsers say of it; old ones say less."""
        sites = {site.strip().lower() for site in headers.getlist("sec-fetch-site")}
        pages = [*headers.getlist("origin"), *headers.getlist("referer")]
        here = tuple(f"{scheme}://{headers['host'].lower()}/" for scheme in ("http", "https"))
        return sites <= OURSELVES and all(f"{page.strip().lower()}/".startswith(here) for page in pages)

    def _is_ours(self, named: list[str]) -> bool:
        host = _HOST.fullmatch(named[0].lower()) if len(named) == 1 else None
        if host is None:
            return False
        name = host[1] or host[2]
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return ANY_ADDRESS in self.hosts
