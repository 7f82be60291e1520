-- Wikipedia: what belongs to a user is in the partition of its number. All else is spread, as pages are found by their titles.
--
-- PostgreSQL has no such statements: there this file is left out. Protocols without partitions do not look at it.

ALTER TABLE useracct PARTITION BY HASH (user_id);
ALTER TABLE user_groups PARTITION BY HASH (ug_user);
ALTER TABLE watchlist PARTITION BY HASH (wl_user);
