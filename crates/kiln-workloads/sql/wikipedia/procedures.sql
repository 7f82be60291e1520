-- Wikipedia: OLTP-bench's five transactions.
--
-- The same file runs on Kiln and on PostgreSQL. Dates and the numbers of revisions come from the caller, so that a call has the
-- same effect wherever it runs. Errors raised here:
--   WK001  no such page
--   WK002  a page without a revision, or a revision without a text: never
--   WK003  no such user

-- Puts a page on a user's watch list; with a page of namespace 0 also its discussion, of namespace 1.
CREATE PROCEDURE add_watch_list(
    watcher      INTEGER,
    name_space   INTEGER,
    title        VARCHAR(255),
    touched      TIMESTAMP
)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO watchlist (wl_user, wl_namespace, wl_title, wl_notificationtimestamp)
    VALUES (watcher, name_space, title, NULL)
    ON CONFLICT DO NOTHING;
    IF name_space = 0 THEN
        INSERT INTO watchlist (wl_user, wl_namespace, wl_title, wl_notificationtimestamp)
        VALUES (watcher, 1, title, NULL)
        ON CONFLICT DO NOTHING;
    END IF;
    UPDATE useracct SET user_touched = touched WHERE user_id = watcher;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no user %', watcher USING ERRCODE = 'WK003';
    END IF;
END
$$;

-- Takes it off again.
CREATE PROCEDURE remove_watch_list(
    watcher    INTEGER,
    name_space INTEGER,
    title      VARCHAR(255),
    touched    TIMESTAMP
)
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM watchlist
    WHERE wl_user = watcher AND wl_namespace = name_space AND wl_title = title;
    IF name_space = 0 THEN
        DELETE FROM watchlist
        WHERE wl_user = watcher AND wl_namespace = 1 AND wl_title = title;
    END IF;
    UPDATE useracct SET user_touched = touched WHERE user_id = watcher;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no user %', watcher USING ERRCODE = 'WK003';
    END IF;
END
$$;

-- Gives a page a new revision, tells those who watch it and have not been told, and counts the edit of a user with an account.
CREATE PROCEDURE update_page(
    edited_page  INTEGER,
    name_space   INTEGER,
    title        VARCHAR(255),
    editor       INTEGER,
    editor_text  VARCHAR(255),
    editor_ip    VARCHAR(40),
    new_id       BIGINT,
    new_text     TEXT,
    remark       TEXT,
    minor_edit   SMALLINT,
    edited       TIMESTAMP,
    OUT watchers INTEGER
)
LANGUAGE plpgsql AS $$
DECLARE
    watcher      INTEGER;
    watcher_name VARCHAR(255);
    text_length  INTEGER := length(new_text);
BEGIN
    INSERT INTO text (old_id, old_text, old_flags, old_page)
    VALUES (new_id, new_text, 'utf-8', edited_page);
    INSERT INTO revision (rev_id, rev_page, rev_text_id, rev_comment, rev_user, rev_user_text,
        rev_timestamp, rev_minor_edit, rev_deleted, rev_len)
    VALUES (new_id, edited_page, new_id, remark, editor, editor_text,
        edited, minor_edit, 0, text_length);
    UPDATE page
    SET page_latest = new_id, page_touched = edited, page_is_new = 0, page_is_redirect = 0,
        page_len = text_length
    WHERE page_id = edited_page;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no page %', edited_page USING ERRCODE = 'WK001';
    END IF;
    INSERT INTO recentchanges (rc_timestamp, rc_namespace, rc_title, rc_minor, rc_cur_id, rc_user,
        rc_user_text, rc_comment, rc_this_oldid, rc_bot, rc_ip, rc_new_len)
    VALUES (edited, name_space, title, minor_edit, edited_page, editor,
        editor_text, remark, new_id, 0, editor_ip, text_length);

    watchers := 0;
    FOR watcher IN
        UPDATE watchlist
        SET wl_notificationtimestamp = edited
        WHERE wl_namespace = name_space AND wl_title = title AND wl_user <> editor
            AND wl_notificationtimestamp IS NULL
        RETURNING wl_user
    LOOP
        SELECT user_name INTO watcher_name FROM useracct WHERE user_id = watcher;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no user %', watcher USING ERRCODE = 'WK003';
        END IF;
        watchers := watchers + 1;
    END LOOP;

    INSERT INTO logging (log_type, log_action, log_timestamp, log_user, log_user_text,
        log_namespace, log_title, log_page, log_rev_id)
    VALUES ('patrol', 'patrol', edited, editor, editor_text,
        name_space, title, edited_page, new_id);
    IF editor > 0 THEN
        UPDATE useracct SET user_editcount = user_editcount + 1, user_touched = edited
        WHERE user_id = editor;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no user %', editor USING ERRCODE = 'WK003';
        END IF;
    END IF;
END
$$;

-- The latest text of a page, for a visitor whose address may be blocked.
CREATE PROCEDURE get_page_anonymous(
    visitor_ip       VARCHAR(40),
    name_space       INTEGER,
    title            VARCHAR(255),
    OUT found_page   INTEGER,
    OUT revision_id  BIGINT,
    OUT article      TEXT,
    OUT restrictions BIGINT,
    OUT blocks       BIGINT
)
LANGUAGE plpgsql AS $$
DECLARE
    text_id BIGINT;
BEGIN
    SELECT page_id, page_latest INTO found_page, revision_id
    FROM page
    WHERE page_namespace = name_space AND page_title = title;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no page % in namespace %', title, name_space
            USING ERRCODE = 'WK001';
    END IF;
    SELECT count(*) INTO restrictions FROM page_restrictions WHERE pr_page = found_page;
    SELECT count(*) INTO blocks FROM ipblocks WHERE ipb_address = visitor_ip;
    SELECT rev_text_id INTO text_id
    FROM revision
    WHERE rev_id = revision_id AND rev_page = found_page;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'page % has no revision %', found_page, revision_id
            USING ERRCODE = 'WK002';
    END IF;
    SELECT old_text INTO article FROM text WHERE old_id = text_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'revision % has no text', revision_id USING ERRCODE = 'WK002';
    END IF;
END
$$;

-- The latest text of a page, for a user with an account, which may be blocked.
CREATE PROCEDURE get_page_authenticated(
    visitor          INTEGER,
    name_space       INTEGER,
    title            VARCHAR(255),
    OUT visitor_name VARCHAR(255),
    OUT groups       BIGINT,
    OUT found_page   INTEGER,
    OUT revision_id  BIGINT,
    OUT article      TEXT,
    OUT restrictions BIGINT,
    OUT blocks       BIGINT
)
LANGUAGE plpgsql AS $$
DECLARE
    text_id BIGINT;
BEGIN
    SELECT user_name INTO visitor_name FROM useracct WHERE user_id = visitor;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no user %', visitor USING ERRCODE = 'WK003';
    END IF;
    SELECT count(*) INTO groups FROM user_groups WHERE ug_user = visitor;
    SELECT page_id, page_latest INTO found_page, revision_id
    FROM page
    WHERE page_namespace = name_space AND page_title = title;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no page % in namespace %', title, name_space
            USING ERRCODE = 'WK001';
    END IF;
    SELECT count(*) INTO restrictions FROM page_restrictions WHERE pr_page = found_page;
    SELECT count(*) INTO blocks FROM ipblocks WHERE ipb_user = visitor;
    SELECT rev_text_id INTO text_id
    FROM revision
    WHERE rev_id = revision_id AND rev_page = found_page;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'page % has no revision %', found_page, revision_id
            USING ERRCODE = 'WK002';
    END IF;
    SELECT old_text INTO article FROM text WHERE old_id = text_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'revision % has no text', revision_id USING ERRCODE = 'WK002';
    END IF;
END
$$;
