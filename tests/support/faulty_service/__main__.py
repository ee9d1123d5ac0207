"""The faulty table service as a program. It is told what to do, and asked, over standard input.

The first line is a JSON array: for each run the rules that hold then. It is answered by the
address. Each line after it asks for the books, a JSON array too. It ends with its standard input,
and so with whoever started it.
"""

# ruff: noqa: E402
from gevent import monkey

monkey.patch_all()

import argparse
import json
import sys
from functools import partial

import gevent

from tests.support.faulty_service.server import FaultyTable


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--upstream", type=int)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--loading-entities", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--certificate", nargs=2)
    said = parser.parse_args()
    read = partial(gevent.get_hub().threadpool.apply, sys.stdin.readline)
    table = FaultyTable(
        said.upstream,
        loading_entities=said.loading_entities,
        seed=said.seed,
        scripts=json.loads(read()),
        certificate=said.certificate,
        address=said.address,
    )
    print(table.url, flush=True)
    while read():
        print(json.dumps(table.books()), flush=True)


main()
