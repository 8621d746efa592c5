-- Which database this is. Spool files bear this id, so that one data directory
-- used with another database never mixes up their runs of the same number. A
-- restored copy keeps it: it is the same laboratory.
CREATE TABLE laboratory (
    the_only   boolean     PRIMARY KEY DEFAULT true CHECK (the_only),
    id         uuid        NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO laboratory DEFAULT VALUES;
