"""A reverse proxy of aiohttp that passes everything on and does nothing else.

``bare_proxy.py http://127.0.0.1:PORT`` prints its own port and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import sys

from aiohttp import ClientSession, DummyCookieJar, TCPConnector, web
from yarl import URL

_BOUND_S = 600.0


async def serve(upstream: str) -> None:
    """Pass on to ``upstream``."""
    connector = TCPConnector(limit=0)
    async with ClientSession(
        connector=connector, cookie_jar=DummyCookieJar(), auto_decompress=False
    ) as session:

        async def pass_on(request: web.BaseRequest) -> web.Response:
            async with session.request(
                request.method,
                URL(upstream + request.raw_path, encoded=True),
                headers=request.headers,
                data=await request.read(),
            ) as answer:
                body = await answer.read()
            return web.Response(status=answer.status, headers=answer.headers, body=body)

        server = await asyncio.get_running_loop().create_server(
            web.Server(pass_on, access_log=None), "127.0.0.1", 0
        )
        print(server.sockets[0].getsockname()[1], flush=True)
        # Bounded, so that nothing is left behind by a benchmark that was killed.
        await asyncio.sleep(_BOUND_S)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
