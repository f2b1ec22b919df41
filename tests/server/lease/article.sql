-- SQL as printed in an article on distributed locks with PostgreSQL ("method 2", leases), without its prompts and answers: the input
-- of the tests that show where it goes wrong. Each block begins with a line "--@ name".
--@ table
create table distlock(id int primary key,expired_time interval,owner text,ts timestamptz);
--@ row
insert into distlock(id) values(1);
--@ acquire node1
update distlock set owner='node1',ts=now(),expired_time=interval '20 second' where id=1 and (owner='node1' or owner is null or now() > ts + expired_time);
--@ acquire node2
update distlock set owner='node2',ts=now(),expired_time=interval '20 second' where id=1 and (owner='node2' or owner is null or now() > ts + expired_time);
--@ release node2
update distlock set owner=null,ts=now() where id=1 and owner='node2';
