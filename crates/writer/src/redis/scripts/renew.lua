-- A lane's owner lives. KEYS: lanes, lane. ARGV: lane's name, owner, lease in ms.
local owner = redis.call('HGET', KEYS[2], 'owner')
if owner ~= ARGV[2] then return {'LOST', owner or '', ''} end
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZADD', KEYS[1], string.format('%.0f', now_ms + ARGV[3]), ARGV[1])
return {'OK'}
