-- U&'…' and U&"…" with UESCAPE.
-- compare: messages

-- snippet: characters-by-their-numbers
SELECT U&'d\0061t\+000061', U&'d!0061t!+000061' UESCAPE '!', u&'\\ '' \00e4', U&'a\0062'
    'c\0064', U&'';
SELECT U&"d\0061t\+000061".x, U&"x!0079" UESCAPE '!' FROM (SELECT 1 AS x, 2 AS xy) AS data;
SELECT U&'\d83d\de00' = chr(128512), length(U&'\d83d\de00'), U&'\005c';
CREATE TABLE U&"\0074abelle" (U&"sp\0061lte" TEXT DEFAULT U&'\00fc');
INSERT INTO tabelle DEFAULT VALUES;
SELECT * FROM tabelle;
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN U&'!0041' UESCAPE '!' || U&'\0042'; END $$;
SELECT f();
-- error: 42601
SELECT U&'\00x1';
-- error: 42601
SELECT U&'\d83d';
-- error: 42601
SELECT U&'\d83dx';
-- error: 42601
SELECT U&'\0000';
-- error: 42601
SELECT U&'a' UESCAPE 'a';
-- error: 42601
SELECT U&'a' UESCAPE '!!';
-- error: 42601
SELECT U&'a' UESCAPE 5;
SELECT 1 AS uescape;
