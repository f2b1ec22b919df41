-- Symfony Messenger 7: addTableToSchema() of its Doctrine transport.
CREATE TABLE messenger_messages (id bigserial PRIMARY KEY, body text NOT NULL, headers text NOT NULL, queue_name varchar(190) NOT NULL, created_at timestamp(0) NOT NULL, available_at timestamp(0) NOT NULL,
    delivered_at timestamp(0) DEFAULT NULL);
CREATE INDEX idx_75ea56e0fb7336f0 ON messenger_messages (queue_name);
CREATE INDEX idx_75ea56e0e3bd61ce ON messenger_messages (available_at);
CREATE INDEX idx_75ea56e016ba31db ON messenger_messages (delivered_at);
