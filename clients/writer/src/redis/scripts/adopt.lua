-- A dead writer's lane changes hands. KEYS: lanes, lane. ARGV: lane's name, owner as surveyed, new owner, new process,
-- lease in ms, 1 when the old process is known to be dead.
-- Of two who try, one finds the owner changed; an owner who has just renewed its lease keeps its lane.
local owner = redis.call('HGET', KEYS[2], 'owner')
if owner ~= ARGV[2] then return {'LOST', owner or '', ''} end
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local expiry = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0')
if ARGV[6] ~= '1' and expiry > now_ms then return {'LOST', owner, ''} end
redis.call('HSET', KEYS[2], 'owner', ARGV[3], 'process', ARGV[4])
redis.call('ZADD', KEYS[1], string.format('%.0f', now_ms + ARGV[5]), ARGV[1])
return {'OK', redis.call('HGET', KEYS[2], 'serial')}
