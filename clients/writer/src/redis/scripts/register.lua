-- A new lane. KEYS: lanes, lane. ARGV: lane's name, owner, process, destination, lease in ms.
-- One that is there already was made by an earlier attempt of which the answer was lost.
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local owner = redis.call('HGET', KEYS[2], 'owner')
if owner and owner ~= ARGV[2] then return {'LOST', owner, ''} end
if not owner then
  redis.call('HSET', KEYS[2], 'owner', ARGV[2], 'process', ARGV[3], 'destination', ARGV[4], 'next', 0, 'serial', 0, 'bytes', 0)
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now_ms + ARGV[5]), ARGV[1])
return {'OK'}
