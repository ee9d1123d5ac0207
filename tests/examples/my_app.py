from harness.workload.scenarios import KeyRange, Scenario


class MyApp(Scenario):
    """A library: PartitionKey is the branch, RowKey the number of the book."""

    actions = {"look_up": 70, "list_branch": 5, "add_book": 25}

    def loading(self):
        return self.batched(
            self.insert(f"branch-{branch}", f"{book:08d}", {"Title": "A book"})
            for branch in range(self.setting.partitions)
            for book in range(self.setting.rows)
        )

    def look_up(self, rng):
        return self.get(f"branch-{self.pick(rng)}", f"{rng.randrange(self.setting.rows):08d}")

    def list_branch(self, rng):
        books = KeyRange(entities=self.setting.rows, exact=not self.does("add_book"))
        return self.query(f"branch-{self.pick(rng)}", name="list_branch", key_range=books)

    def add_book(self, rng):
        key = f"branch-{self.pick(rng)}", self.new_id(after=self.setting.rows)
        result = yield self.insert(*key, {"Title": "A new book"}, name="add_book")
        if result.outcome.succeeded:
            yield self.get(*key, name="read_new_book")
