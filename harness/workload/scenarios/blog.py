"""A blog: posts by month, and three index tables.

The key design for blog posts: Posts has the publish month as PartitionKey, and as RowKey the slug
or an inverted timestamp, which are the two classes here. The index tables have yyyy-MM-dd-HH-mm-ss
and the slug as RowKey, and name their post. The application keeps the tables consistent: it writes
the post first, then its index rows, one after the other.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.operation import KeyRange, Operation
from harness.workload import simulated_time as times
from harness.workload.operation_factory import entities_of
from harness.workload.operation_source import Steps
from harness.workload.scenarios.scenario import Pointers, Recent, Scenario, Setting
from harness.workload.simulated_time import DAY, Clock, EvenSpread, Instant

CATEGORIES = ("architecture", "cloud", "data", "news", "tools")
TOPICS = ("tables", "queues", "blobs", "keys", "queries", "retries", "pricing", "testing")
LEVELS = ("howto", "opinion", "release")
AUTHORS = ("author-1", "author-2", "author-3", "author-4", "author-5", "author-6", "author-7")
LATEST = 10

_INDEXES = (
    ("PostsByCategory", CATEGORIES),
    ("PostsByTag", TOPICS),
    ("PostsByTag", LEVELS),
    ("PostsByAuthor", AUTHORS),
)
_LOADED_DAYS = 27
"""Loaded posts are spread over these first days of each month; new posts follow in the last."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A post; its number determines its category, tags and author."""

    number: int
    slug: str
    published: Instant

    @property
    def listed_by(self) -> Iterator[tuple[str, str]]:
        """Table and PartitionKey of each of its index rows."""
        return ((table, names[self.number % len(names)]) for table, names in _INDEXES)

    @property
    def index_row(self) -> str:
        return f"{self.published.stamp}-{self.slug}"


class Blog(Scenario):
    """Blog posts by month and slug, with three index tables; five entities a post.

    ``fields.month.values`` is the number of months,
    ``keys.rows_per_partition`` the number of posts of a month.
    """

    field = "month"
    tables = ("Posts", "PostsByCategory", "PostsByTag", "PostsByAuthor")
    actions: ClassVar[Mapping[str, float]] = {
        "get_post": 40,
        "list_by_date": 10,
        "list_by_category": 10,
        "list_by_tag": 10,
        "list_by_author": 5,
        "latest_posts": 15,
        "publish": 6,
        "unpublish": 4,
    }
    pointers = tuple(Pointers(table=table, to="Posts") for table in tables[1:])
    _most_read: ClassVar[int | None] = None
    """Posts that `latest_posts` reads; None is the whole month."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._loaded_at = EvenSpread(setting.rows, _LOADED_DAYS * DAY)
        self._last = setting.partitions - 1
        start = times.month(self._last).after(_LOADED_DAYS * DAY)
        self._clock = Clock(start, setting.worker)
        self._moving = self.does("publish", "unpublish")
        self._published: Recent[Post] = Recent()

    def loading(self) -> Iterator[Operation]:
        """Table by table, partition by partition."""
        posts = [self._loaded(*place) for place in self.places()]
        yield from self.batched(self._post(post) for post in posts)
        for table, names in _INDEXES:
            for number, name in enumerate(names):
                listed = posts[number :: len(names)]
                yield from self.batched(self._index_row(post, table, name) for post in listed)

    def get_post(self, rng: random.Random) -> Operation:
        return self.get(*self._key(self._any(rng)), table="Posts", name="get_post")

    def list_by_date(self, rng: random.Random) -> Operation:
        """The posts of a week: a scan of the whole month, as slugs do not sort by date."""
        month, week = self.pick(rng), rng.randrange(4)
        begin = times.month(month).after(week * 7 * DAY)
        return self.query(
            begin.month,
            table="Posts",
            name="list_by_date",
            filter=_published(begin, begin.after(7 * DAY)),
            select=("Title", "Published"),
            key_range=self._month(month),
        )

    def list_by_category(self, rng: random.Random) -> Steps:
        """The posts of a month in a category, then the first of them."""
        return self._list("list_by_category", "PostsByCategory", CATEGORIES, rng)

    def list_by_tag(self, rng: random.Random) -> Steps:
        """The posts of a month with a tag, then the first of them."""
        return self._list("list_by_tag", "PostsByTag", (*TOPICS, *LEVELS), rng)

    def list_by_author(self, rng: random.Random) -> Steps:
        """The posts of a month by an author, then the first of them."""
        return self._list("list_by_author", "PostsByAuthor", AUTHORS, rng)

    def latest_posts(self, rng: random.Random) -> Operation:
        """The first rows of the month; with slugs, the application reads and sorts all rows."""
        return self.query(
            self._clock.now.month,
            table="Posts",
            name="latest_posts",
            select=("Title", "Published"),
            top=self._most_read,
            key_range=self._month(self._last),
        )

    def publish(self, rng: random.Random) -> Steps:
        """A new post, then each of its index rows."""
        new = Post(
            number=rng.randrange(1_000_000),
            slug=f"post-{self.new_id(after=self.loaded_rows)}",
            published=self._clock.next(),
        )
        rows = [self._index_row(new, *listed) for listed in new.listed_by]
        if (yield from self.in_sequence([self._post(new, "publish_post"), *rows])):
            self._published.add(new)

    def unpublish(self, rng: random.Random) -> Steps:
        """Delete the worker's oldest post, then its index rows; if there is none, publish one."""
        post = self._published.take()
        if post is None:
            yield from self.publish(rng)
            return
        deleted = self.delete(*self._key(post), table="Posts", name="unpublish_post")
        rows = [
            self.delete(name, post.index_row, table=table, name="delete_index_row")
            for table, name in post.listed_by
        ]
        yield from self.in_sequence([deleted, *rows])

    def _key(self, post: Post) -> tuple[str, str]:
        return post.published.month, post.slug

    def _any(self, rng: random.Random) -> Post:
        return self._published.sometimes(rng) or self._loaded(*self.place(rng))

    def _loaded(self, month: int, number: int) -> Post:
        of_all = month * self.setting.rows + number
        return Post(
            number=of_all,
            slug=f"post-{of_all:08d}",
            published=times.month(month).after(self._loaded_at.at(number)),
        )

    def _post(self, post: Post, name: str = "") -> Operation:
        content: dict[str, EdmValue] = {
            "Title": f"About {post.slug}",
            "Slug": post.slug,
            "Published": post.published.utc,
            "Author": AUTHORS[post.number % len(AUTHORS)],
        }
        return self.insert(*self._key(post), content, table="Posts", name=name)

    def _index_row(self, post: Post, table: str, partition_key: str) -> Operation:
        # A pointer and what a list shows of a post; not filled up to the size.
        month, row = self._key(post)
        content = {"TargetPartition": month, "TargetRow": row, "Title": f"About {post.slug}"}
        key, name = (partition_key, post.index_row), "insert_index_row"
        return self.insert(*key, content, table=table, name=name, fill=False)

    def _list(self, action: str, table: str, names: Sequence[str], rng: random.Random) -> Steps:
        month, name = self.pick(rng), names[rng.randrange(len(names))]
        family = next(of for at, of in _INDEXES if at == table and name in of)
        first = month * self.setting.rows
        first_listed = first + (family.index(name) - first) % len(family)
        listed = range(first_listed, first + self.setting.rows, len(family))
        result = yield self.query(
            name,
            table=table,
            name=action,
            key_range=KeyRange(
                row_from=times.month(month).month,
                row_before=times.month(month + 1).month,
                entities=len(listed),
                exact=self._still(month),
            ),
        )
        for pointer in entities_of(result)[:1]:
            partition, row = pointer.get("TargetPartition"), pointer.get("TargetRow")
            # The table may hold rows of another application.
            if isinstance(partition, str) and isinstance(row, str):
                # The post may have been deleted since.
                yield self.get(partition, row, table="Posts", name="follow_pointer")

    def _still(self, month: int) -> bool:
        """Whether this loaded month does not change: new posts go to the last one."""
        return month < self._last or not self._moving

    def _month(self, month: int) -> KeyRange:
        new = self._published.written if month == self._last else 0
        return KeyRange(entities=self.setting.rows + new, exact=self._still(month))


class BlogNewestFirst(Blog):
    """The blog with inverted timestamps as RowKeys: the latest posts come first."""

    actions: ClassVar[Mapping[str, float]] = {**Blog.actions, "find_by_slug": 5}
    _most_read = LATEST

    def find_by_slug(self, rng: random.Random) -> Operation:
        """A post by its slug, which is in no key: a scan of its month."""
        month, number = self.place(rng)
        post = self._loaded(month, number)
        return self.query(
            post.published.month,
            table="Posts",
            name="find_by_slug",
            filter=f"Slug eq '{post.slug}'",
            key_range=self._month(month),
        )

    def list_by_date(self, rng: random.Random) -> Operation:
        """The posts of a week: a range, as RowKeys sort by date."""
        month, week = self.pick(rng), rng.randrange(4)
        begin = times.month(month).after(week * 7 * DAY)
        scanned = self._loaded_at.within(week * 7 * DAY, (week + 1) * 7 * DAY)
        return self.query(
            begin.month,
            table="Posts",
            name="list_by_date",
            select=("Title", "Published"),
            key_range=times.newest_first(
                begin, begin.after(7 * DAY), entities=scanned, exact=week < 3 or self._still(month)
            ),
        )

    def _key(self, post: Post) -> tuple[str, str]:
        return post.published.month, post.published.inverted


def _published(begin: Instant, end: Instant) -> str:
    first, last = (f"datetime'{moment.utc:%Y-%m-%dT%H:%M:%SZ}'" for moment in (begin, end))
    return f"Published ge {first} and Published lt {last}"
