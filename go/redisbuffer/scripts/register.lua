-- A new lane. KEYS: lanes, lane. ARGV: lane's name, owner, process, destination, lease in ms, first row's number.
-- One that is there already was made by an earlier attempt of which the answer was lost.
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('HSET', KEYS[2], 'owner', ARGV[2], 'process', ARGV[3], 'destination', ARGV[4], 'next', ARGV[6], 'serial', 0, 'bytes', 0)
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now_ms + ARGV[5]), ARGV[1])
return {'OK'}
