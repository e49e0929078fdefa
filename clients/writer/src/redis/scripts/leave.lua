-- A lane's owner goes. KEYS: lanes, lane, rows, batches, tombstone, bucket's bytes. ARGV: lane's name, owner, tombstone's life
-- in ms, 1 when what is in it is void: its owner has written it elsewhere. An empty lane goes with it, leaving word that it was
-- emptied and not lost, and of how far it went; one with rows is free for the next at once.
local lane = redis.call('HMGET', KEYS[2], 'owner', 'next', 'bytes')
if lane[1] ~= ARGV[2] then return {'LOST', lane[1] or '', ''} end
if ARGV[4] ~= '1' and redis.call('HLEN', KEYS[3]) > 0 then
  redis.call('HSET', KEYS[2], 'owner', 'nobody')
  redis.call('ZADD', KEYS[1], 0, ARGV[1])
  return {'OK'}
end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
redis.call('SET', KEYS[5], lane[2], 'PX', ARGV[3])
if tonumber(lane[3] or '0') > 0 then redis.call('DECRBY', KEYS[6], lane[3]) end
return {'OK'}
