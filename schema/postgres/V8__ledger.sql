-- Which ledger the numbers come from: the first one whose issuer a resolver of this database registered with. Two ledgers would hand
-- out the same numbers.
ALTER TABLE deployment ADD COLUMN ledger text;
