-- Wikipedia: MediaWiki's tables as OLTP-bench has them (Difallah et al., PVLDB 2013).
--
-- The same file runs on Kiln and on PostgreSQL. Differences from OLTP-bench: dates are timestamps and not texts of fourteen digits;
-- the numbers of texts and revisions come from the caller, and recentchanges and logging, which nobody looks into, have none; the
-- indexes are those that the transactions use. The editor without an account is user 0, who has no row.

CREATE TABLE useracct (
    user_id        INTEGER      NOT NULL,
    user_name      VARCHAR(255) NOT NULL,
    user_real_name VARCHAR(255) NOT NULL,
    user_email     VARCHAR(255) NOT NULL,
    user_touched   TIMESTAMP    NOT NULL,
    user_token     CHAR(32)     NOT NULL,
    user_editcount INTEGER      NOT NULL,
    PRIMARY KEY (user_id)
);

CREATE TABLE user_groups (
    ug_user  INTEGER     NOT NULL,
    ug_group VARCHAR(16) NOT NULL,
    PRIMARY KEY (ug_user, ug_group)
);

CREATE TABLE ipblocks (
    ipb_id      INTEGER     NOT NULL,
    ipb_address VARCHAR(40) NOT NULL,
    ipb_user    INTEGER     NOT NULL,
    ipb_reason  TEXT        NOT NULL,
    ipb_expiry  TIMESTAMP   NOT NULL,
    PRIMARY KEY (ipb_id)
);

CREATE INDEX ipblocks_address ON ipblocks (ipb_address, ipb_id);

CREATE INDEX ipblocks_user ON ipblocks (ipb_user, ipb_id);

CREATE TABLE page (
    page_id          INTEGER          NOT NULL,
    page_namespace   INTEGER          NOT NULL,
    page_title       VARCHAR(255)     NOT NULL,
    page_counter     BIGINT           NOT NULL,
    page_is_redirect SMALLINT         NOT NULL,
    page_is_new      SMALLINT         NOT NULL,
    page_random      DOUBLE PRECISION NOT NULL,
    page_touched     TIMESTAMP        NOT NULL,
    page_latest      BIGINT           NOT NULL,
    page_len         INTEGER          NOT NULL,
    PRIMARY KEY (page_id),
    UNIQUE (page_namespace, page_title)
);

CREATE TABLE page_restrictions (
    pr_page    INTEGER     NOT NULL,
    pr_type    VARCHAR(60) NOT NULL,
    pr_level   VARCHAR(60) NOT NULL,
    pr_cascade SMALLINT    NOT NULL,
    PRIMARY KEY (pr_page, pr_type)
);

CREATE TABLE revision (
    rev_id         BIGINT       NOT NULL,
    rev_page       INTEGER      NOT NULL,
    rev_text_id    BIGINT       NOT NULL,
    rev_comment    TEXT         NOT NULL,
    rev_user       INTEGER      NOT NULL,
    rev_user_text  VARCHAR(255) NOT NULL,
    rev_timestamp  TIMESTAMP    NOT NULL,
    rev_minor_edit SMALLINT     NOT NULL,
    rev_deleted    SMALLINT     NOT NULL,
    rev_len        INTEGER      NOT NULL,
    PRIMARY KEY (rev_id)
);

CREATE TABLE text (
    old_id    BIGINT       NOT NULL,
    old_text  TEXT         NOT NULL,
    old_flags VARCHAR(255) NOT NULL,
    old_page  INTEGER      NOT NULL,
    PRIMARY KEY (old_id)
);

CREATE TABLE watchlist (
    wl_user                  INTEGER      NOT NULL,
    wl_namespace             INTEGER      NOT NULL,
    wl_title                 VARCHAR(255) NOT NULL,
    wl_notificationtimestamp TIMESTAMP,
    PRIMARY KEY (wl_user, wl_namespace, wl_title)
);

CREATE INDEX watchlist_page ON watchlist (wl_namespace, wl_title, wl_user);

CREATE TABLE recentchanges (
    rc_timestamp  TIMESTAMP    NOT NULL,
    rc_namespace  INTEGER      NOT NULL,
    rc_title      VARCHAR(255) NOT NULL,
    rc_minor      SMALLINT     NOT NULL,
    rc_cur_id     INTEGER      NOT NULL,
    rc_user       INTEGER      NOT NULL,
    rc_user_text  VARCHAR(255) NOT NULL,
    rc_comment    TEXT         NOT NULL,
    rc_this_oldid BIGINT       NOT NULL,
    rc_bot        SMALLINT     NOT NULL,
    rc_ip         VARCHAR(40)  NOT NULL,
    rc_new_len    INTEGER      NOT NULL
);

CREATE TABLE logging (
    log_type      VARCHAR(32)  NOT NULL,
    log_action    VARCHAR(32)  NOT NULL,
    log_timestamp TIMESTAMP    NOT NULL,
    log_user      INTEGER      NOT NULL,
    log_user_text VARCHAR(255) NOT NULL,
    log_namespace INTEGER      NOT NULL,
    log_title     VARCHAR(255) NOT NULL,
    log_page      INTEGER      NOT NULL,
    log_rev_id    BIGINT       NOT NULL
);
