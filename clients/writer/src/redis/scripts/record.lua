-- What became of rows: batches sealed, halved, done. KEYS: lane, rows, batches, bucket's bytes.
-- ARGV: owner, serial, number of batches to write, (id, members)..., number of batches to forget, id..., entry to release...
-- A repeat (its serial is not above the lane's) does nothing: one that comes late brings nothing back.
local lane = redis.call('HMGET', KEYS[1], 'owner', 'serial', 'next')
if lane[1] ~= ARGV[1] then return {'LOST', lane[1] or '', lane[3] or ''} end
if tonumber(ARGV[2]) <= tonumber(lane[2]) then return {'OK'} end
redis.call('HSET', KEYS[1], 'serial', ARGV[2])
local at = 3
local writes = tonumber(ARGV[at])
at = at + 1
for _ = 1, writes do
  redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1])
  at = at + 2
end
local forgets = tonumber(ARGV[at])
at = at + 1
for _ = 1, forgets do
  redis.call('HDEL', KEYS[3], ARGV[at])
  at = at + 1
end
local released = 0
while at <= #ARGV do
  released = released + redis.call('HSTRLEN', KEYS[2], ARGV[at])
  redis.call('HDEL', KEYS[2], ARGV[at])
  at = at + 1
end
if released > 0 then
  redis.call('HINCRBY', KEYS[1], 'bytes', -released)
  redis.call('DECRBY', KEYS[4], released)
end
return {'OK'}
