-- States of Terraform's "pg" backend, which locks their ids.
SELECT id::bigint AS key, 'Terraform state ' || name AS name
FROM ONLY states
ORDER BY id DESC
LIMIT 10000
