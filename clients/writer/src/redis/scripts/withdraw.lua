-- An entry that its writer was told is not taken. KEYS: lane, rows, bucket's bytes. ARGV: owner, first row's number, rows.
-- Whether it had arrived is not known: it goes if it had, and comes too late if it has not.
local lane = redis.call('HMGET', KEYS[1], 'owner', 'next')
if lane[1] ~= ARGV[1] then return {'LOST', lane[1] or '', lane[2] or ''} end
if tonumber(ARGV[2]) > tonumber(lane[2]) then return {'GAP'} end
local field = ARGV[2] .. ':' .. ARGV[3]
local size = redis.call('HSTRLEN', KEYS[2], field)
redis.call('HDEL', KEYS[2], field)
if size > 0 then
  redis.call('HINCRBY', KEYS[1], 'bytes', -size)
  redis.call('DECRBY', KEYS[3], size)
end
local after = tonumber(ARGV[2]) + tonumber(ARGV[3])
if after > tonumber(lane[2]) then redis.call('HSET', KEYS[1], 'next', string.format('%.0f', after)) end
return {'OK'}
