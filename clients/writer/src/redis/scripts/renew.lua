-- A lane's owner lives. KEYS: lanes, lane. ARGV: lane's name, owner, lease in ms.
-- Who lost it needs to know how far it went: of appends without an answer, those before 'next' are the new owner's.
local lane = redis.call('HMGET', KEYS[2], 'owner', 'next')
if lane[1] ~= ARGV[2] then return {'LOST', lane[1] or '', lane[2] or ''} end
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZADD', KEYS[1], string.format('%.0f', now_ms + ARGV[3]), ARGV[1])
return {'OK'}
