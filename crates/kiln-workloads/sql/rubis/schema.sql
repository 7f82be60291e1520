-- RUBiS: the items, bids and purchases of an auction site (Cecchet et al., OOPSLA 2002).
--
-- The same file runs on Kiln and on PostgreSQL. Users, categories, regions and comments, which the bidding core does not touch,
-- are left out. Prices are whole amounts. initial_quantity is RUBiS' quantity when the auction began, for the audit.

CREATE TABLE items (
    item_id          INTEGER      NOT NULL,
    name             VARCHAR(100) NOT NULL,
    description      TEXT         NOT NULL,
    initial_price    INTEGER      NOT NULL,
    initial_quantity INTEGER      NOT NULL,
    quantity         INTEGER      NOT NULL,
    reserve_price    INTEGER      NOT NULL,
    buy_now          INTEGER      NOT NULL,
    nb_of_bids       INTEGER      NOT NULL,
    max_bid          INTEGER      NOT NULL,
    start_date       TIMESTAMP    NOT NULL,
    end_date         TIMESTAMP    NOT NULL,
    seller_id        INTEGER      NOT NULL,
    PRIMARY KEY (item_id)
);

CREATE TABLE bids (
    bid_user_id  INTEGER   NOT NULL,
    bid_item_id  INTEGER   NOT NULL,
    bid_quantity INTEGER   NOT NULL,
    bid_amount   INTEGER   NOT NULL,
    bid_max      INTEGER   NOT NULL,
    bid_date     TIMESTAMP NOT NULL
);

CREATE INDEX bids_item ON bids (bid_item_id, bid_user_id);

CREATE TABLE buy_now (
    buyer_id     INTEGER   NOT NULL,
    buy_item_id  INTEGER   NOT NULL,
    buy_quantity INTEGER   NOT NULL,
    buy_date     TIMESTAMP NOT NULL
);

CREATE INDEX buy_now_item ON buy_now (buy_item_id, buyer_id);
