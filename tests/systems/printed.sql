create table distlock(id int primary key,expired_time interval,owner text,ts timestamptz);
