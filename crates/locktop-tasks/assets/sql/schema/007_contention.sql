-- Those that cost the most are found without reading all that were counted.
CREATE INDEX idx_contended_cost ON @schema@.contended_locks (total_wait DESC);
