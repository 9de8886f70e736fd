select 'create database shop' where not exists (select from pg_database where datname = 'shop') \gexec
\connect shop
create table if not exists orders (id serial primary key, item text not null, state text not null default 'new');
