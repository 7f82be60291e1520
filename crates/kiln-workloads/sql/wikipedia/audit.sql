-- Wikipedia: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. Joins start at the table whose rows drive them and
-- follow indexes. That no revision, change and log entry is lost depends on the calls, so the driver checks it.

-- latest: a page's latest revision exists, is of this page, and is as long as the page says
SELECT page_id, page_latest, page_len, rev_page, rev_len
FROM page
LEFT JOIN revision ON rev_id = page_latest
WHERE rev_id IS NULL OR rev_page <> page_id OR rev_len <> page_len;

-- text: a revision's text exists, is of the same page, and is as long as the revision says
SELECT rev_id, rev_page, rev_len, old_page
FROM revision
LEFT JOIN text ON old_id = rev_text_id
WHERE old_id IS NULL OR old_page <> rev_page OR length(old_text) <> rev_len;

-- texts: every text is that of a revision
SELECT old_id, old_page
FROM text
LEFT JOIN revision ON rev_id = old_id AND rev_text_id = old_id
WHERE rev_id IS NULL;

-- edits: a user's edit count is the number of the user's revisions
SELECT user_id, user_editcount, count(*) AS revisions
FROM revision
JOIN useracct ON user_id = rev_user
GROUP BY user_id, user_editcount
HAVING user_editcount <> count(*);

-- editors: every revision is by a user, or by nobody with an account
SELECT rev_id, rev_user
FROM revision
LEFT JOIN useracct ON user_id = rev_user
WHERE user_id IS NULL AND rev_user <> 0;

-- title: a page is found by its title
SELECT page.page_id, page.page_title
FROM page
LEFT JOIN page AS twin ON twin.page_namespace = page.page_namespace
    AND twin.page_title = page.page_title
WHERE twin.page_id IS NULL OR twin.page_id <> page.page_id;

-- changes: a recent change is of a revision, by the same user
SELECT rc_this_oldid, rc_cur_id, rc_user
FROM recentchanges
LEFT JOIN revision ON rev_id = rc_this_oldid
WHERE rev_id IS NULL OR rev_page <> rc_cur_id OR rev_user <> rc_user OR rev_len <> rc_new_len;

-- log: a log entry is of a revision, by the same user
SELECT log_rev_id, log_page, log_user
FROM logging
LEFT JOIN revision ON rev_id = log_rev_id
WHERE rev_id IS NULL OR rev_page <> log_page OR rev_user <> log_user;

-- watchers: only users watch
SELECT wl_user, wl_namespace, wl_title
FROM watchlist
LEFT JOIN useracct ON user_id = wl_user
WHERE user_id IS NULL;

-- discussions: who watches a page of namespace 0 watches its discussion
SELECT watchlist.wl_user, watchlist.wl_title
FROM watchlist
LEFT JOIN watchlist AS discussion ON discussion.wl_user = watchlist.wl_user
    AND discussion.wl_namespace = 1 AND discussion.wl_title = watchlist.wl_title
WHERE watchlist.wl_namespace = 0 AND discussion.wl_user IS NULL;

-- watch list: every entry is found by its page
SELECT watchlist.wl_user, watchlist.wl_namespace, watchlist.wl_title
FROM watchlist
LEFT JOIN watchlist AS twin ON twin.wl_namespace = watchlist.wl_namespace
    AND twin.wl_title = watchlist.wl_title AND twin.wl_user = watchlist.wl_user
WHERE twin.wl_user IS NULL;
