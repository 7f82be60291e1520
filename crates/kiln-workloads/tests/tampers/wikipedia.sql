-- Ways to break a Wikipedia database, each with the conditions of audit.sql that must report it ("revisions entered", "changes
-- entered", "log entered" and "edits counted" are the driver's own checks).

-- breaks latest: a page whose latest revision is none
UPDATE page SET page_latest = 7000000 WHERE page_id = 3;

-- breaks latest: a page whose latest revision is of another page
UPDATE page SET page_latest = (SELECT page_latest FROM page AS other WHERE other.page_id = 1) WHERE page_id = 3;

-- breaks latest: a page of the wrong length
UPDATE page SET page_len = page_len + 1 WHERE page_id = 3;

-- breaks text: a revision whose text is lost
DELETE FROM text WHERE old_id = (SELECT min(old_id) FROM text);

-- breaks text: a text cut off
UPDATE text SET old_text = left(old_text, 5) WHERE old_id = (SELECT min(old_id) FROM text);

-- breaks texts, revisions entered: a revision lost, its text left behind
DELETE FROM revision WHERE rev_id = (SELECT min(rev_id) FROM revision);

-- breaks edits: an edit that did not count
UPDATE useracct SET user_editcount = user_editcount - 1 WHERE user_id = (SELECT max(rev_user) FROM revision);

-- breaks edits counted: an edit counted for somebody who made none
UPDATE useracct SET user_editcount = user_editcount + 1 WHERE user_id = 1;

-- breaks editors, watchers: users lost
DELETE FROM useracct;

-- breaks changes, log: a change and a log entry of another page
UPDATE recentchanges SET rc_cur_id = rc_cur_id + 1; UPDATE logging SET log_page = log_page + 1;

-- breaks changes entered: a change entered twice
INSERT INTO recentchanges SELECT * FROM recentchanges;

-- breaks log entered: log entries lost
DELETE FROM logging;

-- breaks discussions: a discussion that is not watched
DELETE FROM watchlist WHERE wl_namespace = 1;
