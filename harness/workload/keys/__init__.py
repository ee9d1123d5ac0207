"""Which PartitionKeys and RowKeys there are, and which of them is touched next."""
